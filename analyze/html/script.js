
"use strict";
const all = (s, e) => [...(e || document).querySelectorAll(s)];
const SVG = "http://www.w3.org/2000/svg";

// A click on a heading sorts its table.
for (const table of all("table.sort")) {
  all("th", table).forEach((th, column) => {
    const button = document.createElement("button");
    button.textContent = th.textContent;
    th.replaceChildren(button);
    let down = false;
    button.addEventListener("click", () => {
      down = !down;
      const value = row => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : parseFloat(cell.dataset.v);
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const x = value(a), y = value(b);
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
      table.tBodies[0].append(...rows);
    });
  });
}

// A link into something closed opens it.
function reveal() {
  const to = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (!to) return;
  let opened = false;
  for (let e = to; e; e = e.parentElement) {
    if (e.tagName === "DETAILS" && !e.open) opened = e.open = true;
  }
  if (opened) to.scrollIntoView({block: "center"});
}
addEventListener("hashchange", reveal);
document.addEventListener("click", e => {
  const a = e.target.closest("a");
  if (a && a.getAttribute("href") === location.hash) setTimeout(reveal);
});
reveal();

// Drawings of transactions are printed whether or not they are open.
let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details.ladder:not([open])");
  for (const d of closed) d.open = true;
});
addEventListener("afterprint", () => { for (const d of closed) d.open = false; });

// Pointing at a drawing says what stands there.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
const said = new Map();
for (const t of all("svg title")) {
  said.set(t.parentNode, t.textContent);
  t.remove(); // or the browser would show it too
}
const cells = document.getElementById("heat-cells");
const heat = cells && JSON.parse(cells.textContent);
const fields = all("svg.field").map(f => {
  const box = ["x", "y", "width", "height"].map(a => parseFloat(f.getAttribute(a)));
  const cursor = document.createElementNS(SVG, "rect");
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("y", box[1]);
  cursor.setAttribute("height", box[3]);
  f.prepend(cursor);
  return {f, svg: f.ownerSVGElement, x: box[0], w: box[2], y: box[1], h: box[3], cursor,
    seconds: parseFloat(f.dataset.seconds), n: parseInt(f.dataset.n)};
});
function place(svg, e) { // in the units of the drawing
  const m = svg.getScreenCTM();
  return m ? {x: (e.clientX - m.e) / m.a, y: (e.clientY - m.f) / m.d} : {x: 0, y: 0};
}
function words(e) {
  let s = said.get(e.target) || "";
  if (!e.target.classList || !e.target.classList.contains("hit")) return s;
  const field = fields.find(f => f.svg === e.target.ownerSVGElement);
  const i = parseInt(e.target.parentNode.getAttribute("href").slice(2));
  if (field && heat && field.svg.closest(".heatmap")) {
    const row = Math.floor((heat.bottom - place(field.svg, e).y) / heat.height);
    const n = (heat.slots[i] || {})[row];
    if (n) s += "\n" + n + " of them took " + heat.rows[row];
  }
  const line = document.getElementById("t" + i);
  if (line) s = (s || line.cells[0].textContent) + "\n" + [...line.lastElementChild.childNodes].map(c => c.textContent).join("\n");
  return s;
}
let drag = null;
document.addEventListener("pointermove", e => {
  const s = drag ? "" : words(e);
  tip.hidden = !s;
  const hit = e.target.classList && e.target.classList.contains("hit");
  for (const f of fields) {
    f.cursor.setAttribute("width", hit ? f.w / f.n : 0);
    if (hit) f.cursor.setAttribute("x", f.x + f.w / f.n * parseInt(e.target.parentNode.getAttribute("href").slice(2)));
  }
  if (!s) return;
  tip.textContent = s;
  tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (e.clientY + 18 + tip.offsetHeight > innerHeight ? Math.max(4, e.clientY - 12 - tip.offsetHeight) : e.clientY + 18) + "px";
});

// Zoom: all drawings over time show the same part [from, to] of it.
let from = 0, to = 1;
function nice(span, n) {
  const raw = span / n, unit = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map(k => k * unit).find(k => k >= raw * (1 - 1e-9));
}
function show(a, b) {
  const least = fields.length ? Math.min(1, 4 / fields[0].n) : 1;
  const span = Math.min(1, Math.max(b - a, least));
  from = Math.max(0, Math.min(1 - span, (a + b - span) / 2));
  to = from + span;
  for (const f of fields) {
    f.f.setAttribute("viewBox", [f.x + from * f.w, f.y, span * f.w, f.h].join(" "));
    const old = all(".xt", f.svg), at = parseFloat(old[0].getAttribute("y1") || f.y + f.h);
    for (const e of old) e.remove();
    const step = nice(span * f.seconds, 10), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let k = Math.ceil(from * f.seconds / step - 1e-9); k * step <= to * f.seconds * (1 + 1e-9); k++) {
      const x = f.x + f.w * (k * step / f.seconds - from) / span;
      const line = document.createElementNS(SVG, "line"), text = document.createElementNS(SVG, "text");
      for (const [name, value] of [["x1", x], ["x2", x], ["y1", at], ["y2", at + 4], ["class", "axis xt"]]) line.setAttribute(name, value);
      for (const [name, value] of [["x", x], ["y", at + 17], ["text-anchor", "middle"], ["class", "tick xt"]]) text.setAttribute(name, value);
      text.textContent = (k * step).toFixed(digits) + " s";
      f.svg.append(line, text);
    }
  }
  for (const b of all(".zoom .whole")) b.disabled = span === 1;
}
for (const f of fields) {
  const bar = document.createElement("div");
  bar.className = "zoom";
  for (const [name, label, act] of [
    ["in", "+", () => show(from + (to - from) / 4, to - (to - from) / 4)],
    ["out", "\u2212", () => show(from - (to - from) / 2, to + (to - from) / 2)],
    ["earlier", "\u25c0", () => show(from - (to - from) / 2, to - (to - from) / 2)],
    ["later", "\u25b6", () => show(from + (to - from) / 2, to + (to - from) / 2)],
    ["whole", "whole", () => show(0, 1)]]) {
    const b = document.createElement("button");
    b.textContent = label;
    b.className = name;
    b.title = name === "whole" ? "show the whole time" : name;
    b.disabled = name === "whole";
    b.addEventListener("click", act);
    bar.append(b);
  }
  f.svg.before(bar);
  f.svg.addEventListener("dragstart", e => e.preventDefault());
  f.svg.addEventListener("pointerdown", e => {
    const x = place(f.svg, e).x;
    if (e.button !== 0 || e.pointerType === "touch" || x < f.x || x > f.x + f.w) return;
    const mark = document.createElementNS(SVG, "rect");
    mark.setAttribute("class", "mark");
    mark.setAttribute("y", f.y);
    mark.setAttribute("height", f.h);
    f.svg.append(mark);
    drag = {f, a: x, b: x, mark};
  });
}
addEventListener("pointermove", e => {
  if (!drag) return;
  const f = drag.f;
  drag.b = Math.max(f.x, Math.min(f.x + f.w, place(f.svg, e).x));
  drag.mark.setAttribute("x", Math.min(drag.a, drag.b));
  drag.mark.setAttribute("width", Math.abs(drag.b - drag.a));
});
let dragged = false;
addEventListener("pointerup", () => {
  if (!drag) return;
  const {f, a, b, mark} = drag;
  mark.remove();
  drag = null;
  dragged = Math.abs(b - a) > 4;
  if (dragged) {
    const part = x => from + (to - from) * (x - f.x) / f.w;
    show(part(Math.min(a, b)), part(Math.max(a, b)));
    setTimeout(() => { dragged = false; });
  }
});
addEventListener("pointercancel", () => { if (drag) { drag.mark.remove(); drag = null; } });
addEventListener("click", e => { if (dragged) { e.preventDefault(); e.stopPropagation(); } }, true);
addEventListener("keydown", e => { if (e.key === "Escape") { show(0, 1); tip.hidden = true; } });
