// The longest way through all count states that can be reached: the loop that `benchmarks.search` compares with.
//
// Nothing of the project is in it but the layout of keys. States of a layer (instructions left) lie in an open
// addressing table of their own, which stays in the cache and is forgotten when its layer is done, so there is no
// witness. Numbers of `packing.Problem` come in; cycles, states, leaves and seconds of the processor go out.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

using std::vector;

struct Field { int shift; uint64_t mask; int base, end; };
static vector<int> sigma, unit, first, successors, height, counter;
static vector<Field> fields;

static inline uint64_t mixed(uint64_t x) { x *= 0x9E3779B97F4A7C15u; return x ^ (x >> 32); }
static inline uint64_t hashed(uint64_t key) { return mixed(key); }
static inline uint64_t hashed(unsigned __int128 key) { return mixed(uint64_t(key) ^ mixed(uint64_t(key >> 64) + 1)); }

template <class Key> struct Layer {  // linear probing, a power of two, at most half full; value 0 is an empty slot
  struct Slot { Key key; int value; };
  vector<Slot> slots = vector<Slot>(1024);
  size_t used = 0;

  void raise(Key key, int value) {
    if (2 * used >= slots.size()) {
      vector<Slot> old(2 * slots.size());
      old.swap(slots);
      used = 0;
      for (auto &slot : old) if (slot.value) raise(slot.key, slot.value);
    }
    size_t mask = slots.size() - 1, at = hashed(key) & mask;
    while (slots[at].value && slots[at].key != key) at = (at + 1) & mask;
    if (!slots[at].value) { slots[at].key = key; ++used; }
    if (slots[at].value < value) slots[at].value = value;
  }
};

template <class Key> struct Search {
  struct Pair { int code, warps, field; };
  struct Sum { Key key; int fall; };
  using Pairs = vector<Pair>;
  using Sums = vector<Sum>;
  vector<Layer<Key>> layers;
  vector<Pairs> pairs;
  vector<Sums> before, own;  // of the classes before one, and of one class
  long states = 0, leaves = 0;

  // every way in which `left` warps of the pairs from `at` on move, where so many stand at them and behind
  void choose(const Pairs &all, size_t at, int left, int standing, Sum sum, Sums &made) {
    if (!left) made.push_back(sum);
    else split(all, at, first[all[at].code], all[at].warps, left, standing - all[at].warps, sum, made);
  }

  // the same where `room` warps of the pair may take this or a later edge
  void split(const Pairs &all, size_t at, int edge, int room, int left, int behind, Sum sum, Sums &made) {
    const Pair &pair = all[at];
    if (edge == first[pair.code + 1]) {
      if (left <= behind) choose(all, at + 1, left, behind, sum, made);
      return;
    }
    const int to = successors[edge], fall = height[pair.code] - (to < 0 ? 0 : height[to]);
    const bool last = edge + 1 == first[pair.code + 1];
    for (int take = 0; take <= room && take <= left; ++take) {
      if (!last || left - take <= behind) split(all, at, edge + 1, room - take, left - take, behind, sum, made);
      if (fields[pair.field].end) sum.key += Key(1) << fields[pair.field - take].shift;
      else sum.key += (to < 0 ? Key(0) : Key(1) << fields[counter[to]].shift) - (Key(1) << fields[pair.field].shift);
      sum.fall += fall;
    }
  }

  void expand(Key key, int value, int layer) {
    ++states;
    for (auto &all : pairs) all.clear();
    int standing = -1;
    for (int number = 0; number < int(fields.size()); ++number) {
      const Field &field = fields[number];
      int held = int(uint64_t(key >> field.shift) & field.mask), code = field.base, warps = held;
      if (field.end) { code += held; warps = held < field.end; }
      if (!warps) continue;
      Pairs &all = pairs[unit[code]];
      if (code != standing) all.push_back({code, 0, 0});
      all.back().warps += warps;
      all.back().field = number;
      standing = code;
    }
    before[0].assign(1, {key, 0});
    for (size_t at = 0; at < pairs.size(); ++at) {
      int ready = 0;
      for (auto &pair : pairs[at]) ready += pair.warps;
      own[at].clear();
      choose(pairs[at], 0, ready < sigma[at] ? ready : sigma[at], ready, {0, 0}, own[at]);
      if (at + 1 == pairs.size()) break;
      before[at + 1].clear();
      for (auto &a : before[at]) for (auto &b : own[at]) before[at + 1].push_back({a.key + b.key, a.fall + b.fall});
    }
    for (auto &a : before.back()) for (auto &b : own.back()) layers[layer - a.fall - b.fall].raise(a.key + b.key, value);
    leaves += long(before.back().size() * own.back().size());
  }

  int run(const vector<std::pair<Key, int>> &starts, int top) {
    layers.resize(top + 1);
    pairs.resize(sigma.size());
    before.resize(sigma.size());
    own.resize(sigma.size());
    for (auto &start : starts) layers[start.second].raise(start.first, 1);  // one more than the cycles
    for (int layer = top; layer > 0; --layer) {
      for (auto &slot : layers[layer].slots) if (slot.value) expand(slot.key, slot.value + 1, layer);
      vector<typename Layer<Key>::Slot>().swap(layers[layer].slots);
    }
    for (auto &slot : layers[0].slots) if (slot.value) return slot.value - 1;
    return -1;
  }
};

static uint64_t number() {
  long long read;
  if (scanf("%lld", &read) != 1) exit(1);
  return uint64_t(read);
}

static vector<int> numbers() {
  vector<int> all(number());
  for (int &one : all) one = int(number());
  return all;
}

template <class Key> void answer() {
  vector<std::pair<Key, int>> starts(number());
  int top = 0;
  for (auto &start : starts) {
    start.first = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += 64) start.first |= Key(number()) << shift;
    start.second = int(number());
    top = start.second > top ? start.second : top;
  }
  Search<Key> search;
  clock_t began = clock();
  int cycles = search.run(starts, top);
  printf("%d %ld %ld %.6f\n", cycles, search.states, search.leaves, double(clock() - began) / CLOCKS_PER_SEC);
}

int main() {
  for (auto *all : {&sigma, &unit, &first, &successors, &height, &counter}) *all = numbers();
  fields.resize(number());
  for (auto &field : fields) {
    field.shift = int(64 * number());
    field.shift += int(number());
    field.mask = number();
    field.base = int(number());
    field.end = int(number());
  }
  if (number() == 1) answer<uint64_t>();
  else answer<unsigned __int128>();
}
