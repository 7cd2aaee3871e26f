"use strict";
// The chart of a schedule that can be zoomed. The page is complete without it; it draws the JSON in #page-data.
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const chart = page.chart;
  if (chart.omitted) return;
  const element = (id) => document.getElementById(id);
  const canvas = element("gantt"), view = element("view"), tip = element("tip"), here = element("here");
  const paper = canvas.getContext("2d");
  const makespan = chart.makespan, kinds = chart.kinds;
  const AXIS = 22, GAP = 10, NARROWEST = Math.min(8, makespan), HATCHED = 12;
  const TALLEST = 16000;  // device pixels that every browser grants a canvas

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
  const origins = chart.places.map((known) => {
    const line = numbers(known.line);
    return new Map(Array.from(sumUp(numbers(known.place)), (place, at) => [place, chart.lines[line[at]]]));
  });

  /** A row: stretches [first, end) of a kind in order of time; `warp` is that of the row, `who` that of a stretch. */
  function decoded(row) {
    const [kind, gap, cycles, who, step, port] =
      ["kind", "gap", "cycles", "who", "place", "port"].map((key) => numbers(row[key]));
    const first = new Int32Array(kind.length), end = new Int32Array(kind.length);
    for (let at = 0, now = 0; at < kind.length; at++) {
      first[at] = now + gap[at];
      now = end[at] = first[at] + cycles[at];
    }
    return { ...row, kind, who, first, end, place: sumUp(step).map((place) => place - 1), port };
  }

  const every = chart.rows.map(decoded), isLane = (row) => row.warp === null;
  const byWarp = new Map(every.filter((row) => !isLane(row)).map((row) => [row.warp, row]));

  /** The stretch that contains a cycle, or the next one after it. */
  function search(row, cycle) {
    let low = 0, high = row.first.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.end[middle] > cycle) high = middle; else low = middle + 1;
    }
    return low;
  }

  // ---- what is shown

  const shown = { from: 0, to: makespan, warps: null, classes: new Set(chart.units) };
  const mark = { cycle: null, row: 0 };
  let rows = every, left = 80, laidOut = [];

  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const colours = kinds.map((kind) => rgb(kind.colour)), faint = rgb("#f0f0f0");
  const isChosen = (warp) => warp < 0 || !shown.warps || shown.warps.has(warp);
  const isVisible = (row, at) => isChosen(row.who[at]) &&
    (kinds[row.kind[at]].unit === "|" || shown.classes.has(kinds[row.kind[at]].unit));
  const hatches = kinds.map(({ tile, line }) => {
    if (!tile) return null;
    const made = document.createElement("canvas"), pen = made.getContext("2d");
    made.width = made.height = 6;
    pen.strokeStyle = line;
    pen.stroke(new Path2D(tile));
    return paper.createPattern(made, "repeat");
  });

  // ---- drawing; lengths in CSS pixels but where `ratio` says device pixels

  function layOut() {
    const lanes = rows.filter(isLane).length;
    const heights = [[lanes, 480, 20], [rows.length - lanes, 640, 18]].map(
      ([count, room, tallest]) => Math.max(12, Math.min(tallest, Math.floor(room / Math.max(1, count)))));
    let y = AXIS;
    laidOut = rows.map((row, at) => {
      if (at && at === lanes) y += GAP;
      else if (at && row.group !== rows[at - 1].group) y += 6;
      const place = { row, y, height: heights[isLane(row) ? 0 : 1] };
      y += place.height;
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
    left = Math.ceil(Math.max(...rows.map((row) => paper.measureText(row.name).width), 20)) + 14;
    const area = width - left - 1, scale = area / (shown.to - shown.from);
    if (area < 1) return;  // the chart is hidden
    const marks = [...ticks(scale)];
    paper.fillStyle = "rgba(0,0,0,.13)";
    for (const [, x] of marks) paper.fillRect(Math.round(x), AXIS - 4, 1, height - AXIS);
    for (const place of laidOut) {
      (scale > 1 ? drawBars : drawMixture)(place, area, scale, ratio);
      text(place.row.name, left - 6, place.y + place.height / 2, "right", "#1a1a1a");
    }
    for (const [cycle, x] of marks) {
      const words = String(cycle), half = paper.measureText(words).width / 2;
      text(words, Math.min(x, left + area - half), AXIS / 2, "center", "#5a5a5a");
    }
    text("cycle", left - 6, AXIS / 2, "right", "#5a5a5a");
    drawMark(area, scale, height);
    element("window").value = `cycles ${Math.floor(shown.from)} to ${Math.ceil(shown.to)} of ${makespan}`;
  }

  function text(words, x, y, align, colour) {
    paper.fillStyle = colour;
    paper.textAlign = align;
    paper.textBaseline = "middle";
    paper.fillText(words, x, y);
  }

  function drawBars(place, area, scale, ratio) {
    const { row, y, height } = place;
    if (isLane(row)) {
      paper.fillStyle = chart.idle.colour;
      paper.fillRect(left, y, area, height - 1);
    }
    each(place, area, scale, ratio, 0, (at, x, size) => {
      const kind = kinds[row.kind[at]], edge = size > 5 ? 1 : 0;
      paper.fillStyle = isVisible(row, at) ? kind.colour : `rgb(${faint})`;
      paper.fillRect(x, y, size - edge, height - 1);
      hatch(row, at, x, y, size - edge, height - 1);
      const label = kind.why === "issues" && row.who[at] >= 0 ? String(isLane(row) ? row.who[at] : row.place[at]) : "";
      if (label && isVisible(row, at) && size > 7 * label.length + 4) {
        text(label, x + (size - edge) / 2, y + height / 2, "center", kind.ink);
      }
    });
  }

  /** Call `deed` for the stretches in sight that are as wide as that, with their left ends and widths. */
  function each({ row, y, height }, area, scale, ratio, least, deed) {
    // whole pixels of the device: what touches leaves no seam
    const x = (cycle) => Math.round((left + (cycle - shown.from) * scale) * ratio) / ratio;
    paper.save();
    paper.beginPath();
    paper.rect(left, y, area, height);
    paper.clip();
    for (let at = search(row, shown.from); at < row.first.length && row.first[at] < shown.to; at++) {
      if ((row.end[at] - row.first[at]) * scale < least) continue;
      const begin = x(row.first[at]);
      deed(at, begin, x(row.end[at]) - begin);
    }
    paper.restore();
  }

  /** Hatch a bar unless it is so narrow that the hatch would hide it. */
  function hatch(row, at, x, y, width, height) {
    if (!hatches[row.kind[at]] || width < HATCHED || !isVisible(row, at)) return;
    paper.fillStyle = hatches[row.kind[at]];
    paper.fillRect(x, y, width, height);
  }

  /** Where several cycles share a pixel it has the mean of their colours. */
  function drawMixture(place, area, scale, ratio) {
    const { row, y, height } = place;
    const width = Math.round(area * ratio), tall = Math.max(1, Math.round((height - 1) * ratio));
    const ground = isLane(row) ? rgb(chart.idle.colour) : [255, 255, 255], mixed = new Float32Array(3 * width);
    const step = (shown.to - shown.from) / width;
    for (let at = search(row, shown.from); at < row.first.length && row.first[at] < shown.to; at++) {
      const colour = isVisible(row, at) ? colours[row.kind[at]] : faint;
      const from = Math.max(0, (row.first[at] - shown.from) / step);
      const to = Math.min(width, (row.end[at] - shown.from) / step);
      for (let x = Math.floor(from); x < to; x++) {
        const part = Math.min(x + 1, to) - Math.max(x, from);
        for (let channel = 0; channel < 3; channel++) mixed[3 * x + channel] += part * (colour[channel] - ground[channel]);
      }
    }
    const image = paper.createImageData(width, tall);
    for (let x = 0; x < width; x++) {
      for (let channel = 0; channel < 3; channel++) image.data[4 * x + channel] = Math.round(ground[channel] + mixed[3 * x + channel]);
      image.data[4 * x + 3] = 255;
    }
    for (let below = 1; below < tall; below++) image.data.copyWithin(4 * below * width, 0, 4 * width);
    paper.putImageData(image, Math.round(left * ratio), Math.round(y * ratio));
    each(place, area, scale, ratio, HATCHED, (at, x, size) => hatch(row, at, x, y, size, height - 1));
  }

  /** Where the axis has its numbers. */
  function* ticks(scale) {
    let step = 1;
    while (step * scale < 70) for (const factor of [2, 2.5, 2]) if (step * scale < 70) step *= factor;
    for (let cycle = Math.ceil(shown.from / step) * step; cycle <= shown.to; cycle += step) {
      yield [cycle, left + (cycle - shown.from) * scale];
    }
  }

  function drawMark(area, scale, height) {
    if (mark.cycle === null || mark.cycle < shown.from - 1 || mark.cycle > shown.to) return;
    const place = laidOut[mark.row];
    paper.strokeStyle = "#d55e00";
    paper.lineWidth = 2;
    paper.strokeRect(left + (mark.cycle - shown.from) * scale, AXIS - 3, Math.max(scale, 1), height - AXIS);
    if (place) paper.strokeRect(left, place.y - 0.5, area, place.height);
  }

  let waiting = 0;
  const redraw = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; draw(); }); };

  // ---- words

  function describe(row, cycle) {
    const at = search(row, cycle), inside = at < row.first.length && row.first[at] <= cycle;
    const lines = [`${isLane(row) ? "port " : ""}${row.name}, cycle ${cycle}: ${what(row, at, inside)}`];
    if (!inside || row.who[at] < 0 || kinds[row.kind[at]].why !== "issues") return lines[0];
    // a port is held from the cycle on in which its warp issues
    const own = byWarp.get(row.who[at]), place = own.place[search(own, row.first[at])];
    lines[0] += `, place ${place}`;
    if (page.instance.blocks > 1) lines[0] += `, block ${block[row.who[at]]}`;
    const origin = origins[group[row.who[at]]].get(place);
    if (origin) lines.push(`${origin.at}  ${origin.text}`);
    if (origin && origin.source) lines.push(`source ${origin.source}`);
    return lines.join("\n");
  }

  function what(row, at, inside) {
    if (!inside) return isLane(row) ? "idle, no warp is ready for it" : `finished in cycle ${row.end[row.end.length - 1]}`;
    const first = row.first[at], last = row.end[at] - 1, kind = kinds[row.kind[at]];
    const during = first === last ? "" : ` (cycles ${first} to ${last})`;
    if (isLane(row) && row.who[at] >= 0) return `held by warp ${row.who[at]}${during}`;
    if (isLane(row)) return `idle, a warp is ${kind.words}${during}`;
    return kind.words + (kind.why === "issues" ? ` on port ${kind.unit}${row.port[at]}` : "") + during;
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
      const last = Math.min(Number(match[2] ?? match[1]), byWarp.size - 1);
      for (let warp = Number(match[1]); warp <= last; warp++) found.add(warp);
    }
    return found.size ? found : undefined;
  }

  function choose(chosen) {
    shown.warps = chosen;
    rows = every.filter((row) => isLane(row) || isChosen(row.warp));
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
    Object.assign(shown, { from: 0, to: makespan, classes: new Set(chart.units) });
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
