// The shortest and the longest schedule of small instances, from all states: the truth of `benchmarks.soundness`.
//
// Written from the text of docs/model.md and nothing else; "rule" below is a rule there. Instances come in as words,
// one after another (`benchmarks.explorer` writes them); the answer to each is a line: cycles of the shortest and of
// the longest schedule, states, and steps from one to the next; or "large", where there are more steps than allowed.
//
//   machine PARTITIONS any|modulo WIDTH any|fair     WIDTH 0: no limit
//   resource CAPACITY shared|private
//   class CAPACITY shared|private INTERVAL LEAST MOST
//   use LEAST MOST N resource...                     of the class before
//   program blocks|ahead N start...
//   place CLASS N successor...                       CLASS -1: a barrier; the number of places: finished
//   timing STALL LEAST MOST N sets... N awaits...    of the place before, if its warp runs ahead
//   warp PROGRAM BLOCK                               in the order of their numbers
//   explore STEPS

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <unordered_map>
#include <vector>

using std::string;
using std::vector;

struct Use { int least, most; vector<int> resources; };
struct Ports { int capacity; bool shared; };
struct Class { Ports ports; int interval, least, most; vector<Use> uses; };
struct Place { int unit; vector<int> successors; int stall, least, most; vector<int> sets, awaits; };
struct Program { bool ahead; vector<int> starts; vector<Place> places; };
struct Warp { int program, block; };
struct TooLarge {};

const int BARRIER = -1, NOTHING = -2, NEVER = 0xffff;

// A state at the beginning of a cycle: a row for every warp, then for every port the cycles for which it is still held.
// READY is for how many cycles the warp has been ready, ISSUED how many cycles ago it issued last; both are 0 where no
// scheduler promises anything. Behind them, for every token, the cycles for which it is still pending.
enum { PLACE, WAIT, PARTITION, READY, ISSUED, TOKENS };
using State = std::u16string;
struct Lengths { int shortest, longest; };

struct Instance {
  int partitions = 1, width = 0;
  bool modulo = false, fair = false;
  vector<Ports> resources;
  vector<Class> classes;
  vector<Program> programs;
  vector<Warp> warps;

  struct Pool { int begin, capacity; };               // of a class or resource: which of the ports in a state
  struct Option { vector<int> pools, resources; };    // of an instruction: its pools, and the resource of each use
  vector<Pool> pools;
  vector<vector<vector<Option>>> options;             // by partition and class
  int row = TOKENS, blocks = 0, slots = 0;
  long left = 0, steps = 0;
  std::unordered_map<State, Lengths> known;

  char16_t *of(State &state, int warp) const { return &state[size_t(warp) * row]; }
  const char16_t *of(const State &state, int warp) const { return &state[size_t(warp) * row]; }
  const Program &program(int warp) const { return programs[warps[warp].program]; }
  bool at_end(const char16_t *own, int warp) const { return own[PLACE] == program(warp).places.size(); }

  void prepare() {
    int tokens = 0, begin = 0;
    for (auto &one : programs) for (auto &place : one.places)
      for (auto list : {&place.sets, &place.awaits}) for (int token : *list) tokens = std::max(tokens, token + 1);
    row = TOKENS + tokens;
    begin = row * int(warps.size());
    for (auto &warp : warps) blocks = std::max(blocks, warp.block + 1);
    vector<vector<int>> number(partitions);  // of a pool, by partition and class, then resource
    auto add = [&](const Ports &ports) {
      for (int part = 0; part < partitions; ++part) {
        if (!part || !ports.shared) { pools.push_back({begin, ports.capacity}); begin += ports.capacity; }
        number[part].push_back(int(pools.size()) - 1);
      }
    };
    for (auto &one : classes) add(one.ports);
    for (auto &one : resources) add(one);
    slots = int(pools.size());  // an issue slot is like a port that is held for the cycle of the issue (rule 3)
    for (int part = 0; part < partitions; ++part) {
      options.emplace_back();
      for (size_t name = 0; name < classes.size(); ++name) {
        vector<Option> found{{{number[part][name], slots + part}, {}}};
        for (auto &use : classes[name].uses) {
          vector<Option> longer;
          for (auto &one : found) for (int resource : use.resources) {
            longer.push_back(one);
            longer.back().pools.push_back(number[part][classes.size() + resource]);
            longer.back().resources.push_back(resource);
          }
          found = longer;
        }
        options[part].push_back(found);
      }
    }
  }

  // Rules 2 and 7: the class for which a warp is ready, or a barrier at which it has arrived.
  int wants(const State &state, int warp) const {
    auto own = of(state, warp);
    if (at_end(own, warp) || own[WAIT]) return NOTHING;
    auto &place = program(warp).places[own[PLACE]];
    for (int token : place.awaits) if (own[TOKENS + token]) return NOTHING;
    return place.unit;
  }

  // Rule 8.
  bool has_finished(const State &state, int warp) const {
    auto own = of(state, warp);
    return at_end(own, warp) && !own[WAIT] && std::all_of(own + TOKENS, own + row, [](int left) { return !left; });
  }

  // Every set of ready warps that may issue together: maximal (rule 4), and allowed by a fair scheduler (rule 9).
  struct Issue { int warp, unit; const Option *option; };

  void issues(const State &state, const std::function<void(const vector<Issue> &)> &then) const {
    vector<Issue> ready;
    for (int warp = 0; warp < int(warps.size()); ++warp)
      if (int unit = wants(state, warp); unit >= 0) ready.push_back({warp, unit, nullptr});
    vector<int> free;
    for (auto &pool : pools) {
      auto begin = state.begin() + pool.begin;
      free.push_back(int(std::count(begin, begin + pool.capacity, 0)));
    }
    free.resize(pools.size() + partitions, width ? width : int(warps.size()));

    auto ways = [&](const Issue &one) -> const vector<Option> & {
      return options[of(state, one.warp)[PARTITION]][one.unit];
    };
    auto is_free = [&](const Option &option) {
      return std::all_of(option.pools.begin(), option.pools.end(), [&](int pool) { return free[pool] > 0; });
    };
    auto fits = [&](const Issue &one) { return std::any_of(ways(one).begin(), ways(one).end(), is_free); };
    auto change = [&](const Option &option, int by) { for (int pool : option.pools) free[pool] += by; };
    auto is_unfair = [&](const Issue &first, const Issue &passed) {
      auto a = of(state, passed.warp), b = of(state, first.warp);
      if (a[READY] <= b[READY] || a[ISSUED] <= b[ISSUED]) return false;
      change(*first.option, 1);
      bool in_its_stead = fits(passed);
      change(*first.option, -1);
      return in_its_stead;
    };
    auto is_allowed = [&] {
      for (auto &passed : ready) if (!passed.option) {
        if (fits(passed)) return false;
        if (fair) for (auto &first : ready) if (first.option && is_unfair(first, passed)) return false;
      }
      return true;
    };
    std::function<void(size_t)> choose = [&](size_t at) {
      if (at == ready.size()) {
        if (!is_allowed()) return;
        vector<Issue> issuing;
        for (auto &one : ready) if (one.option) issuing.push_back(one);
        then(issuing);
        return;
      }
      // Of warps that nothing tells apart it does not matter which are left out: the last of them.
      if (!at || ready[at - 1].option || !are_equal(state, ready[at - 1].warp, ready[at].warp))
        for (auto &option : ways(ready[at])) if (is_free(option)) {
          ready[at].option = &option;
          change(option, -1);
          choose(at + 1);
          change(option, 1);
          ready[at].option = nullptr;
        }
      choose(at + 1);
    };
    choose(0);
  }

  bool are_alike(int a, int b) const {
    return warps[a].program == warps[b].program && warps[a].block == warps[b].block;
  }
  bool are_equal(const State &state, int a, int b) const {
    return are_alike(a, b) && std::equal(of(state, a), of(state, a) + row, of(state, b));
  }

  // The state one cycle later, if nobody issues.
  State aged(const State &state) const {
    State next = state;
    for (int warp = 0; warp < int(warps.size()); ++warp) {
      auto own = of(next, warp);
      own[WAIT] -= own[WAIT] > 0;
      for (int at = TOKENS; at < row; ++at) own[at] -= own[at] > 0;
      if (!fair) continue;
      own[READY] = wants(state, warp) >= 0 ? own[READY] + 1 : 0;
      own[ISSUED] += own[ISSUED] != NEVER;
    }
    for (size_t at = warps.size() * row; at < next.size(); ++at) next[at] -= next[at] > 0;
    return next;
  }

  void hold(State &next, int pool, int cycles) const {  // from the cycle of the issue on, which has passed (rule 5)
    auto begin = next.begin() + pools[pool].begin, end = begin + pools[pool].capacity;
    if (cycles > 1) *std::find(begin, end, 0) = char16_t(cycles - 1);
  }

  // What the adversary chooses for every instruction that is issued (rule 6), one after another.
  void move(const State &state, const State &next, const vector<Issue> &issuing, size_t at, vector<State> &found) {
    if (at == issuing.size()) return settle(next, 0, found);
    auto [warp, unit, option] = issuing[at];
    auto &one = classes[unit];
    auto &place = program(warp).places[of(state, warp)[PLACE]];
    bool ahead = program(warp).ahead;
    State moved = next;
    hold(moved, option->pools[0], one.interval);
    std::function<void(size_t, const State &)> use = [&](size_t number, const State &held) {
      if (number == one.uses.size()) return move(state, held, issuing, at + 1, found);
      for (int cycles = one.uses[number].least; cycles <= one.uses[number].most; ++cycles) {
        State longer = held;
        hold(longer, option->pools[2 + number], cycles);
        use(number + 1, longer);
      }
    };
    for (int successor : place.successors)
      for (int latency = ahead ? place.least : one.least; latency <= (ahead ? place.most : one.most); ++latency) {
        State gone = moved;
        auto own = of(gone, warp);
        own[PLACE] = char16_t(successor);
        own[WAIT] = char16_t((ahead ? place.stall : latency) - 1);
        own[READY] = 0;
        own[ISSUED] = fair && !at_end(own, warp);
        for (int token : place.sets) own[TOKENS + token] = std::max<char16_t>(own[TOKENS + token], latency - 1);
        use(0, gone);
      }
  }

  // Rule 7: whoever can pass a barrier passes it, block after block, and may come to the next one.
  void settle(const State &state, int block, vector<State> &found) {
    if (block == blocks) {
      if (++steps > left) throw TooLarge();
      found.push_back(canonical(state));
      return;
    }
    vector<int> passing;
    for (int warp = 0; warp < int(warps.size()); ++warp) {
      if (warps[warp].block != block || has_finished(state, warp)) continue;
      if (wants(state, warp) != BARRIER) return settle(state, block + 1, found);
      passing.push_back(warp);
    }
    if (passing.empty()) return settle(state, block + 1, found);
    std::function<void(size_t, const State &)> pass = [&](size_t at, const State &passed) {
      if (at == passing.size()) return settle(passed, block, found);
      for (int successor : program(passing[at]).places[of(state, passing[at])[PLACE]].successors) {
        State gone = passed;
        of(gone, passing[at])[PLACE] = char16_t(successor);
        pass(at + 1, gone);
      }
    };
    pass(0, state);
  }

  // Names of warps of one program and block, and of ports of one pool, make no difference.
  State canonical(State state) const {
    for (size_t a = 1; a < warps.size(); ++a)
      for (size_t b = a; b > 0 && are_alike(int(b - 1), int(b)); --b) {
        auto one = of(state, int(b - 1)), other = of(state, int(b));
        if (!std::lexicographical_compare(other, other + row, one, one + row)) break;
        std::swap_ranges(one, one + row, other);
      }
    for (auto &pool : pools) {
      auto begin = state.begin() + pool.begin;
      std::sort(begin, begin + pool.capacity);
    }
    return state;
  }

  // Every way to begin: partitions, and where each program starts.
  void starts(vector<State> &found) {
    State begin(warps.size() * row, 0);
    for (auto &pool : pools) begin.append(pool.capacity, 0);
    int count = int(warps.size()), least = count / partitions;
    vector<int> sizes(partitions);
    std::function<void(int, const State &)> place = [&](int warp, const State &state) {
      if (warp == count) return settle(state, 0, found);
      for (int part = 0; part < partitions; ++part) {
        if (modulo ? part != warp % partitions : part && !sizes[part - 1]) continue;  // partitions have no names
        ++sizes[part];
        // of two partitions one has at most one warp more
        bool even = sizes[part] <= least + (count % partitions > 0);
        if (even && warp + 1 == count) even = *std::min_element(sizes.begin(), sizes.end()) >= least;
        if (even) for (int start : program(warp).starts) {
          State next = state;
          of(next, warp)[PLACE] = char16_t(start);
          of(next, warp)[PARTITION] = char16_t(part);
          of(next, warp)[ISSUED] = fair ? NEVER : 0;
          place(warp + 1, next);
        }
        --sizes[part];
      }
    };
    place(0, begin);
  }

  Lengths either(vector<State> &states) {
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
    Lengths all{NEVER, 0};
    for (auto &state : states) {
      Lengths one = from(state);
      all = {std::min(all.shortest, one.shortest), std::max(all.longest, one.longest)};
    }
    return all;
  }

  Lengths from(const State &state) {
    if (auto found = known.find(state); found != known.end()) return found->second;
    bool finished = true;
    for (int warp = 0; warp < int(warps.size()); ++warp) finished &= has_finished(state, warp);
    Lengths lengths{0, 0};
    if (!finished) {
      vector<State> following;
      State later = aged(state);
      issues(state, [&](const vector<Issue> &issuing) { move(state, later, issuing, 0, following); });
      auto [shortest, longest] = either(following);
      lengths = {1 + shortest, 1 + longest};
    }
    known.emplace(state, lengths);
    return lengths;
  }

  void explore(long limit) {
    left = limit;
    prepare();
    try {
      vector<State> begun;
      starts(begun);
      auto [shortest, longest] = either(begun);
      std::cout << shortest << ' ' << longest << ' ' << known.size() << ' ' << steps << std::endl;
    } catch (TooLarge &) {
      std::cout << "large" << std::endl;
    }
  }
};

static int number() { int read; std::cin >> read; return read; }
static string word() { string read; std::cin >> read; return read; }
static vector<int> numbers() {
  vector<int> read(number());
  for (int &one : read) one = number();
  return read;
}

int main() {
  std::ios::sync_with_stdio(false);
  Instance instance;
  for (string what; std::cin >> what;) {
    if (what == "machine") {
      instance.partitions = number();
      instance.modulo = word() == "modulo";
      instance.width = number();
      instance.fair = word() == "fair";
    } else if (what == "resource") {
      int capacity = number();
      instance.resources.push_back({capacity, word() == "shared"});
    } else if (what == "class") {
      int capacity = number();
      bool shared = word() == "shared";
      int interval = number(), least = number(), most = number();
      instance.classes.push_back({{capacity, shared}, interval, least, most, {}});
    } else if (what == "use") {
      int least = number(), most = number();
      instance.classes.back().uses.push_back({least, most, numbers()});
    } else if (what == "program") {
      bool ahead = word() == "ahead";
      instance.programs.push_back({ahead, numbers(), {}});
    } else if (what == "place") {
      int unit = number();
      instance.programs.back().places.push_back({unit, numbers(), 0, 0, 0, {}, {}});
    } else if (what == "timing") {
      auto &place = instance.programs.back().places.back();
      place.stall = number(), place.least = number(), place.most = number();
      place.sets = numbers(), place.awaits = numbers();
    } else if (what == "warp") {
      int program = number();
      instance.warps.push_back({program, number()});
    } else if (what == "explore") {
      instance.explore(number());
      instance = Instance();
    } else {
      std::cerr << "unknown word " << what << std::endl;
      return 2;
    }
  }
}
