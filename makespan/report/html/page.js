"use strict";
// The Gantt chart. The page is complete without it; whatever is drawn comes from the JSON in #page-data.
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const chart = page.chart;
  if (chart.omitted) return;
  const element = (id) => document.getElementById(id);
  const canvas = element("gantt"), view = element("view"), tip = element("tip"), here = element("here");
  const paper = canvas.getContext("2d");
  const makespan = chart.makespan;
  const KINDS = chart.kinds.length, DIMMED = KINDS;  // the last colour stands for what a filter leaves out
  const AXIS = 22, GAP = 10, NARROWEST = Math.min(8, makespan);
  const TALLEST = 16000;  // device pixels that every browser grants a canvas
  const BUCKET = Math.max(8, Math.ceil(makespan / 8192));  // cycles in an entry of the sums of a row

  // ---- data

  /** The whole numbers of a column: base64 of bytes of base 128, signs in the lowest bit; "r" has pairs with runs. */
  function numbers(text) {
    const bytes = atob(text.slice(1)), found = [];
    for (let at = 0, value = 0, digit = 1; at < bytes.length; at++) {
      const byte = bytes.charCodeAt(at);
      value += (byte & 127) * digit;
      digit *= 128;
      if (byte < 128) {
        found.push(value % 2 ? -(value + 1) / 2 : value / 2);
        value = 0;
        digit = 1;
      }
    }
    if (text[0] === "p") return Int32Array.from(found);
    const runs = [];
    for (let at = 0; at < found.length; at += 2) for (let i = 0; i < found[at + 1]; i++) runs.push(found[at]);
    return Int32Array.from(runs);
  }

  const sumUp = (steps) => { let sum = 0; return steps.map((step) => (sum += step)); };
  const group = numbers(chart.warps.group), block = numbers(chart.warps.block);
  const home = chart.warps.home && numbers(chart.warps.home);
  /** A name with its partition, where there are several; null is all of them. */
  const inPartition = (partition, name) => (!home ? name : partition === null ? `all: ${name}` : `p${partition}: ${name}`);
  const origins = chart.places.map((known) => {
    const line = numbers(known.line);
    return new Map(Array.from(sumUp(numbers(known.place)), (place, at) => [place, chart.lines[line[at]]]));
  });

  /** A row: stretches [first, end) of a kind in order of time; `who` is the warp, `place` is -1 where none executes. */
  function row(name, isLane, size) {
    return {
      name, isLane, first: new Int32Array(size), end: new Int32Array(size), kind: new Uint8Array(size),
      who: new Int32Array(size), place: new Int32Array(size).fill(-1), port: new Int32Array(size), sums: null,
    };
  }

  function warpRows() {
    const data = chart.rows;
    const sizes = numbers(data.stretches), kind = numbers(data.kind), cycles = numbers(data.cycles);
    const steps = numbers(data.place), port = numbers(data.port);
    let stretch = 0, wait = 0, issue = 0;
    return Array.from(sizes, (size, warp) => {
      const made = row(inPartition(home && home[warp], `warp ${warp}`), false, size);
      made.who.fill(warp);
      for (let at = 0, now = 0, place = -1; at < size; at++, stretch++) {
        const issues = chart.kinds[kind[stretch]].why === "issues";
        made.first[at] = now;
        now += issues ? 1 : cycles[wait++];
        made.end[at] = now;
        made.kind[at] = kind[stretch];
        if (issues) {
          made.place[at] = place += steps[issue];
          made.port[at] = port[issue++];
        }
      }
      return made;
    });
  }

  const warps = warpRows();
  /** Warps of a partition together. */
  const inOrder = (some) => (home ? [...some].sort((one, other) => home[one.who[0]] - home[other.who[0]]) : some);
  const finish = warps.map((each) => each.end.length ? each.end[each.end.length - 1] : 0);
  /** The first of those that finish last; its name always stands. */
  const laggard = finish.indexOf(finish.reduce((most, each) => Math.max(most, each), 0));

  /** Which port is held by whom, of those that are ever held; `chosen` says which warps are not dimmed. */
  function laneRows(chosen) {
    const held = new Map();
    const lane = (unit, port) => held.get(`${unit}${port}`) || held.set(`${unit}${port}`, []).get(`${unit}${port}`);
    const interval = new Map(chart.units.map((unit) => [unit.name, unit.interval]));
    for (const each of warps) {
      for (let at = 0; at < each.first.length; at++) {
        if (each.place[at] < 0) continue;
        const unit = chart.kinds[each.kind[at]].unit, warp = each.who[at], first = each.first[at];
        const kind = chosen(warp) ? each.kind[at] : DIMMED;
        const end = Math.min(first + interval.get(unit), makespan);
        lane(unit, each.port[at]).push([first, end, kind, warp, each.place[at]]);
      }
    }
    const [unit, port, cycles, resource] = ["unit", "port", "cycles", "resource"].map((key) => numbers(chart.lacking[key]));
    sumUp(numbers(chart.lacking.first_cycle)).forEach((first, at) => {
      const name = chart.units[unit[at]].name;
      const kind = chart.kinds.findIndex((each) => each.why === ["slot", "resource"][resource[at]] && each.unit === name);
      lane(name, port[at]).push([first, first + cycles[at], kind, -1, -1]);
    });
    const made = [];
    for (const unit of chart.units) {
      for (let port = 0; port < unit.capacity; port++) {
        const spans = held.get(`${unit.name}${port}`);
        if (!spans) continue;
        spans.sort((one, other) => one[0] - other[0]);
        const lane = row(inPartition(unit.home[port], `${unit.name}${port}`), true, spans.length);
        spans.forEach((span, at) => {
          [lane.first[at], lane.end[at], lane.kind[at], lane.who[at], lane.place[at]] = span;
        });
        lane.home = unit.home[port];
        made.push(lane);
      }
    }
    return home ? made.sort((one, other) => (one.home ?? Infinity) - (other.home ?? Infinity) || 0) : made;
  }

  /** For every bucket of cycles, how many cycles of each kind lie before it. */
  function sums(each) {
    if (each.sums) return each.sums;
    const buckets = Math.ceil(makespan / BUCKET), width = KINDS + 1;
    const table = each.sums = new Int32Array((buckets + 1) * width);
    for (let at = 0; at < each.first.length; at++) {
      for (let from = each.first[at]; from < each.end[at];) {
        const bucket = Math.floor(from / BUCKET), to = Math.min(each.end[at], (bucket + 1) * BUCKET);
        table[(bucket + 1) * width + each.kind[at]] += to - from;
        from = to;
      }
    }
    for (let at = width; at < table.length; at++) table[at] += table[at - width];
    return table;
  }

  /** The stretch that contains a cycle, or the next one after it. */
  function search(each, cycle) {
    let low = 0, high = each.first.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (each.end[middle] > cycle) high = middle; else low = middle + 1;
    }
    return low;
  }

  // ---- what is shown

  const shown = { from: 0, to: makespan, warps: null, classes: new Set(chart.units.map((unit) => unit.name)) };
  const mark = { cycle: null, row: 0 };
  let lanes = laneRows(() => true), rows = [...lanes, ...inOrder(warps)], left = 80, laidOut = [];

  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const faint = [240, 240, 240], idle = rgb(chart.idle.colour), white = [255, 255, 255];
  const css = (colour) => `rgb(${colour.join()})`;
  function palette() {
    const visible = (kind) => kind.unit === "|" || shown.classes.has(kind.unit);
    return [...chart.kinds.map((kind) => (visible(kind) ? rgb(kind.colour) : faint)), faint];
  }

  const STROKES = { slash: [[-1, 7, 7, -1]], back: [[-1, -1, 7, 7]], cross: [[-1, -1, 7, 7], [-1, 7, 7, -1]],
    lines: [[0, 3, 6, 3]], grid: [[0, 3, 6, 3], [3, 0, 3, 6]], dots: [] };
  /** Whether the hatch of a kind covers a pixel; the same tiles as those of `tile`. */
  const COVERS = { slash: (x, y) => (x + y) % 6 === 0, back: (x, y) => (x - y + 6000) % 6 === 0,
    cross: (x, y) => (x + y) % 6 === 0 || (x - y + 6000) % 6 === 0, lines: (x, y) => y % 6 === 3,
    grid: (x, y) => x % 6 === 3 || y % 6 === 3, dots: (x, y) => x % 6 < 2 && y % 6 < 2 };

  function tile({ pattern, line }) {
    if (!pattern) return null;
    const made = document.createElement("canvas"), pen = made.getContext("2d");
    made.width = made.height = 6;
    pen.strokeStyle = pen.fillStyle = line;
    for (const [x, y, toX, toY] of STROKES[pattern]) { pen.moveTo(x, y); pen.lineTo(toX, toY); }
    pen.stroke();
    if (pattern === "dots") pen.fillRect(2, 2, 2, 2);
    return paper.createPattern(made, "repeat");
  }
  const hatches = chart.kinds.map(tile);

  // ---- drawing; lengths in CSS pixels but where `ratio` says device pixels

  /** The heights of the rows of a panel, and from how many rows to the next its names stand. */
  function heights(count, room, tallest) {
    const height = Math.max(4, Math.min(tallest, Math.floor(room / Math.max(1, count))));
    return { height, every: [1, 2, 5, 10].find((step) => step * height >= 12) };
  }

  const homeOf = (each) => (!home ? null : each.isLane ? each.home : home[each.who[0]]);

  function layOut() {
    const ofLanes = heights(lanes.length, 480, 20), ofWarps = heights(rows.length - lanes.length, 640, 18);
    const last = rows.findIndex((each) => !each.isLane && each.who[0] === laggard);
    let y = AXIS;
    laidOut = rows.map((each, at) => {
      if (at === lanes.length && at) y += GAP;
      else if (at && homeOf(each) !== homeOf(rows[at - 1])) y += 6;
      const { height, every } = each.isLane ? ofLanes : ofWarps;
      const regular = (each.isLane ? at : at - lanes.length) % every === 0;
      const named = at === last || (regular && (each.isLane || last < 0 || Math.abs(at - last) >= every));
      const place = { row: each, y, height, named };
      y += height;
      return place;
    });
    return y + 4;
  }

  function draw(width = view.clientWidth, ratio = window.devicePixelRatio || 1) {
    const height = layOut();
    ratio = Math.min(ratio, TALLEST / height);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    paper.setTransform(ratio, 0, 0, ratio, 0, 0);
    paper.fillStyle = "#fff";
    paper.fillRect(0, 0, width, height);
    paper.font = "11px system-ui, sans-serif";
    left = Math.ceil(Math.max(...rows.map((each) => paper.measureText(each.name).width), 20)) + 14;
    const area = width - left - 1, perPixel = (shown.to - shown.from) / area;
    if (area < 1) return;  // nobody sees it
    const colours = palette();
    drawLines(area, height);
    for (const place of laidOut) {
      if (perPixel < 1) drawBars(place, area, colours, ratio);
      else drawMixture(place, area, colours, ratio);
      if (place.named) text(place.row.name, left - 6, place.y + place.height / 2, "right", "#1a1a1a");
    }
    drawAxis(area);
    drawMark(area, height);
    element("window").value = `cycles ${Math.floor(shown.from)} to ` +
      `${Math.ceil(shown.to)} of ${makespan}`;
  }

  function text(words, x, y, align, colour) {
    paper.fillStyle = colour;
    paper.textAlign = align;
    paper.textBaseline = "middle";
    paper.fillText(words, x, y);
  }

  function drawBars({ row: each, y, height }, area, colours, ratio) {
    const scale = area / (shown.to - shown.from);
    // whole pixels of the device: what touches leaves no seam
    const x = (cycle) => Math.round((left + (cycle - shown.from) * scale) * ratio) / ratio;
    paper.save();
    paper.beginPath();
    paper.rect(left, y, area, height);
    paper.clip();
    paper.fillStyle = css(idle);
    if (each.isLane) paper.fillRect(left, y, area, height - 1);
    for (let at = search(each, shown.from); at < each.first.length && each.first[at] < shown.to; at++) {
      const begin = x(each.first[at]), size = x(each.end[at]) - begin, kind = chart.kinds[each.kind[at]];
      const edge = size > 5 ? 1 : 0, colour = colours[each.kind[at]];
      paper.fillStyle = css(colour);
      paper.fillRect(begin, y, size - edge, height - 1);
      if (!kind || colour === faint) continue;
      if (kind.pattern && size > 5) {
        paper.fillStyle = hatches[each.kind[at]];
        paper.fillRect(begin, y, size - edge, height - 1);
      }
      const label = each.place[at] < 0 ? "" : String(each.isLane ? each.who[at] : each.place[at]);
      if (label && height > 10 && size > 7 * label.length + 4) {
        text(label, begin + (size - edge) / 2, y + height / 2, "center", kind.ink);
      }
    }
    paper.restore();
  }

  /** Where several cycles share a pixel it has the mean of their colours. */
  function drawMixture({ row: each, y, height }, area, colours, ratio) {
    const width = Math.round(area * ratio), tall = Math.max(1, Math.round((height - 1) * ratio));
    const image = paper.createImageData(width, tall), pixels = new Uint32Array(image.data.buffer);
    const line = pixels.subarray(0, width), main = new Uint8Array(width).fill(DIMMED), part = new Float32Array(width);
    const step = (shown.to - shown.from) / width;
    const ground = each.isLane ? idle : white, kinds = KINDS + 1;
    const coarse = step >= BUCKET ? sums(each) : null;
    for (let x = 0, at = search(each, shown.from); x < width; x++) {
      let from = shown.from + x * step, to = from + step, red = 0, green = 0, blue = 0, seen = 0, most = 0;
      const add = (kind, cycles) => {
        if (cycles > most) {
          most = cycles;
          main[x] = kind;
        }
        const colour = colours[kind];
        red += colour[0] * cycles;
        green += colour[1] * cycles;
        blue += colour[2] * cycles;
        seen += cycles;
      };
      if (coarse) {
        from = Math.floor(from / BUCKET);
        to = Math.min(Math.max(from + 1, Math.floor(to / BUCKET)), Math.ceil(makespan / BUCKET));
        for (let kind = 0; kind < kinds; kind++) add(kind, coarse[to * kinds + kind] - coarse[from * kinds + kind]);
        to = Math.min(to * BUCKET, makespan);
        from *= BUCKET;
      } else {
        while (at < each.first.length && each.end[at] <= from) at++;
        for (let next = at; next < each.first.length && each.first[next] < to; next++) {
          add(each.kind[next], Math.min(to, each.end[next]) - Math.max(from, each.first[next]));
        }
      }
      const whole = Math.max(to - from, seen), rest = whole - seen;
      const mean = (sum, channel) => Math.round((sum + rest * ground[channel]) / whole);
      line[x] = (255 << 24) | (mean(blue, 2) << 16) | (mean(green, 1) << 8) | mean(red, 0);
      part[x] = most / whole;
    }
    for (let below = 1; below < tall; below++) pixels.copyWithin(below * width, 0, width);
    hatch(image.data, width, tall, main, part, colours);
    paper.putImageData(image, Math.round(left * ratio), Math.round(y * ratio));
  }

  /** The lines of the hatch of what takes most of each column, as strong as its part of the time. */
  function hatch(data, width, tall, main, part, colours) {
    main.forEach((kind, x) => {
      const look = chart.kinds[kind];
      if (!look || !look.pattern || colours[kind] === faint) return;
      const covers = COVERS[look.pattern], line = rgb(look.line);
      for (let y = 0; y < tall; y++) {
        if (!covers(x, y)) continue;
        for (let channel = 0; channel < 3; channel++) {
          data[4 * (y * width + x) + channel] += part[x] * (line[channel] - colours[kind][channel]);
        }
      }
    });
  }

  /** Where the axis has its numbers. */
  function* ticks(area) {
    const scale = area / (shown.to - shown.from);
    let step = 1;
    for (const factor of [2, 2.5, 2]) if (step * scale < 70) step *= factor;
    while (step * scale < 70) for (const factor of [2, 2.5, 2]) if (step * scale < 70) step *= factor;
    for (let cycle = Math.ceil(shown.from / step) * step; cycle <= shown.to; cycle += step) {
      yield [cycle, left + (cycle - shown.from) * scale];
    }
  }

  function drawLines(area, height) {
    paper.fillStyle = "rgba(0,0,0,.13)";
    for (const [, x] of ticks(area)) paper.fillRect(Math.round(x), AXIS - 4, 1, height - AXIS);
  }

  function drawAxis(area) {
    for (const [cycle, x] of ticks(area)) {
      const words = String(cycle), half = paper.measureText(words).width / 2;
      text(words, Math.min(x, left + area - half), AXIS / 2, "center", "#5a5a5a");
    }
    text("cycle", left - 6, AXIS / 2, "right", "#5a5a5a");
  }

  function drawMark(area, height) {
    if (mark.cycle === null || mark.cycle < shown.from - 1 || mark.cycle > shown.to) return;
    const scale = area / (shown.to - shown.from), x = left + (mark.cycle - shown.from) * scale;
    const place = laidOut[mark.row];
    paper.strokeStyle = "#d55e00";
    paper.lineWidth = 2;
    paper.strokeRect(x, AXIS - 3, Math.max(scale, 1), height - AXIS);
    if (place) paper.strokeRect(left, place.y - 0.5, area, place.height);
  }

  let waiting = 0;
  const redraw = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; draw(); }); };

  // ---- words

  function describe(each, cycle) {
    const at = search(each, cycle);
    const inside = at < each.first.length && each.first[at] <= cycle;
    const lines = [`${each.isLane ? "port " : ""}${each.name}, cycle ${cycle}: ` + what(each, at, inside, cycle)];
    if (inside && each.place[at] >= 0) {
      const warp = each.who[at], origin = origins[group[warp]].get(each.place[at]);
      lines[0] += `, place ${each.place[at]}`;
      if (page.instance.blocks > 1) lines[0] += `, block ${block[warp]}`;
      if (origin) lines.push(`${origin.at}  ${origin.text}`);
      if (origin && origin.source) lines.push(`source ${origin.source}`);
    }
    return lines.join("\n");
  }

  function what(each, at, inside, cycle) {
    if (!inside) return each.isLane ? "idle, no warp is ready for it" : `finished in cycle ${finish[each.who[0]]}`;
    const first = each.first[at], last = each.end[at] - 1;
    const during = first === last ? "" : ` (cycles ${first} to ${last})`;
    if (each.isLane && each.who[at] >= 0) return `held by warp ${each.who[at]}${during}`;
    if (each.isLane) return `idle, a warp is ready and no issue slot is left${during}`;
    const on = each.place[at] < 0 ? "" : ` on port ${chart.kinds[each.kind[at]].unit}${each.port[at]}`;
    return chart.kinds[each.kind[at]].words + on + during;
  }

  function point(cycle, at) {
    mark.cycle = Math.max(0, Math.min(makespan - 1, cycle));
    mark.row = Math.max(0, Math.min(rows.length - 1, at));
    here.hidden = false;
    here.textContent = describe(rows[mark.row], mark.cycle);
    redraw();
  }

  // ---- moving

  function look(from, size) {
    const width = Math.max(NARROWEST, Math.min(makespan, size));
    shown.from = Math.max(0, Math.min(makespan - width, from));
    shown.to = shown.from + width;
    redraw();
  }

  function zoom(factor, anchor = (shown.from + shown.to) / 2) {
    const width = Math.max(NARROWEST, Math.min(makespan, (shown.to - shown.from) * factor));
    look(anchor - (anchor - shown.from) * width / (shown.to - shown.from), width);
  }

  const pan = (share) => look(shown.from + share * (shown.to - shown.from), shown.to - shown.from);
  const fit = () => look(0, makespan);

  function goTo(cycle) {
    const width = Math.min(shown.to - shown.from, 120);
    look(cycle + 0.5 - width / 2, width);
    point(cycle, mark.row);
  }

  const deeds = { in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.5), right: () => pan(0.5), fit };
  const keys = {
    "+": deeds.in, "=": deeds.in, "-": deeds.out, "0": fit, Home: () => look(0, shown.to - shown.from),
    End: () => look(makespan, shown.to - shown.from), ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1),
    ArrowUp: () => point(markedCycle(), mark.row - 1), ArrowDown: () => point(markedCycle(), mark.row + 1),
  };
  const markedCycle = () => mark.cycle ?? Math.floor((shown.from + shown.to) / 2);

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const deed = event.shiftKey && step ? () => point(markedCycle() + step, mark.row) : keys[event.key];
    if (!deed) return;
    event.preventDefault();
    deed();
  });

  const cycleAt = (x) => shown.from + (x - left) * (shown.to - shown.from) / (canvas.clientWidth - left - 1);

  function hit(event) {
    const box = canvas.getBoundingClientRect(), y = event.clientY - box.top, x = event.clientX - box.left;
    const at = laidOut.findIndex((place) => y >= place.y && y < place.y + place.height);
    const cycle = Math.floor(cycleAt(x));
    return at < 0 || x < left || cycle < 0 || cycle >= makespan ? null : { at, cycle };
  }

  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;  // the page scrolls on under the pointer
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / canvas.clientWidth);
    else zoom(2 ** (Math.max(-120, Math.min(120, event.deltaY)) / 200), cycleAt(event.offsetX));
  }, { passive: false });

  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event.offsetX);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (before === undefined) return showTip(event);
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
    fingers.set(event.pointerId, event.offsetX);
    moved += Math.abs(event.offsetX - before);
    tip.hidden = true;
    if (!others.length) return look(shown.from + cycleAt(before) - cycleAt(event.offsetX), shown.to - shown.from);
    const [fixed] = others, apart = Math.abs(event.offsetX - fixed);
    if (apart > 10) zoom(Math.abs(before - fixed) / apart, cycleAt(fixed));
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      const found = hit(event);
      if (fingers.delete(event.pointerId) && name === "pointerup" && moved < 4 && found) point(found.cycle, found.at);
    });
  }
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });

  function showTip(event) {
    const found = hit(event);
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = describe(rows[found.at], found.cycle);
    const wide = tip.offsetWidth, tall = tip.offsetHeight;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - wide - 8))}px`;
    tip.style.top = `${event.clientY + 18 + tall > window.innerHeight ? event.clientY - tall - 10 : event.clientY + 18}px`;
  }

  // ---- controls

  /** The warps that a text such as "0-3, 7" names; null for all; undefined for what is no such text. */
  function named(words) {
    if (!words.trim()) return null;
    const found = new Set();
    for (const part of words.split(",")) {
      const match = /^\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?$/.exec(part);
      if (!match) return undefined;
      const last = Math.min(Number(match[2] ?? match[1]), warps.length - 1);
      for (let warp = Number(match[1]); warp <= last; warp++) found.add(warp);
    }
    return found.size ? found : undefined;
  }

  function choose(chosen) {
    shown.warps = chosen;
    lanes = laneRows((warp) => !chosen || chosen.has(warp));
    rows = [...lanes, ...inOrder(warps.filter((each, warp) => !chosen || chosen.has(warp)))];
    mark.row = Math.min(mark.row, rows.length - 1);
    redraw();
  }

  element("controls").addEventListener("submit", (event) => event.preventDefault());
  element("controls").addEventListener("click", (event) => deeds[event.target.dataset.do]?.());
  element("cycle").addEventListener("change", (event) => {
    if (event.target.value !== "" && event.target.checkValidity()) goTo(event.target.valueAsNumber);
  });
  element("filter").addEventListener("input", (event) => {
    const chosen = named(event.target.value);
    event.target.setAttribute("aria-invalid", String(chosen === undefined));
    if (chosen !== undefined) choose(chosen);
  });
  for (const box of document.querySelectorAll("input[name=class]")) {
    box.addEventListener("change", () => {
      if (box.checked) shown.classes.add(box.value); else shown.classes.delete(box.value);
      redraw();
    });
  }

  // ---- printing shows the whole, with everything unfolded

  let before = null;
  window.addEventListener("beforeprint", () => {
    const folded = [...document.querySelectorAll("details:not([open])")];
    before = { ...shown, folded, cycle: mark.cycle };
    folded.forEach((each) => { each.open = true; });
    Object.assign(shown, { from: 0, to: makespan, classes: new Set(chart.units.map((unit) => unit.name)) });
    mark.cycle = null;
    choose(null);
    draw(1000, 2);
    canvas.style.height = "auto";
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    const { folded, cycle, ...saved } = before;
    mark.cycle = cycle;
    folded.forEach((each) => { each.open = false; });
    Object.assign(shown, saved);
    choose(saved.warps);
    before = null;
  });

  element("controls").hidden = view.hidden = false;
  new ResizeObserver(redraw).observe(view);
  draw();
})();
