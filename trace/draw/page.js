'use strict';
// data-error tells a test what went wrong.
window.addEventListener('error', (e) => { document.body.dataset.error = e.message; });

const nodes = [...document.querySelectorAll('script.nodes')].map((s) => JSON.parse(s.textContent));
const tip = document.getElementById('tip');
let near = [];

// show tells about a mark, and lets the other marks of its node stand out.
function show(mark, x, y) {
  hide();
  const run = mark.closest('.run').dataset.run;
  const n = nodes[run][mark.dataset.n];
  const lines = [];
  if (n) {
    lines.push(`${n.ID}  ${n.Op}`, `${n.Place}${n.Rows && `, ${n.Rows} rows`}${n.Critical && ', on the critical path'}`);
    if (n.Run) lines.push(`ready ${n.Ready}, wait ${n.Wait}, run ${n.Run}, own ${n.Own}, ${n.Share} of the request`);
    if (n.Status !== 'ok') lines.push(n.Status);
    if (n.Fails) lines.push(n.Fails);
  }
  if (mark.dataset.d) lines.push('', mark.dataset.d);
  tip.textContent = lines.join('\n').trim();
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? Math.max(4, y - tip.offsetHeight - 10) : y + 18}px`;
  if (!n) return;
  const i = mark.dataset.n;
  for (const place of document.querySelectorAll(`.run[data-run="${run}"]`)) {
    near.push(...place.querySelectorAll(`.node[data-n="${i}"], .slice[data-n="${i}"], .flow[data-n="${i}"], .edge[data-from="${i}"], .edge[data-to="${i}"]`));
    place.classList.add('dim');
    near.push(place);
  }
  near.forEach((e) => e.classList.add('near'));
}

function hide() {
  tip.hidden = true;
  near.forEach((e) => e.classList.remove('near', 'dim'));
  near = [];
}

for (const title of document.querySelectorAll('svg title')) title.remove(); // which a drawing alone has in place of the tip
const marked = (e) => e.target.closest?.('[data-n]:not(.flow)');
document.addEventListener('mouseover', (e) => { const m = marked(e); if (m) show(m, e.clientX, e.clientY); else hide(); });
document.addEventListener('focusin', (e) => {
  const m = marked(e);
  if (m) { const box = m.getBoundingClientRect(); show(m, box.left, box.bottom); }
});
document.addEventListener('focusout', hide);
document.addEventListener('keydown', (e) => { if (e.key === 'Escape') hide(); });

// The table of a run is made when it is opened: most readers of a large plan never do.
const columns = ['Critical', 'ID', 'Op', 'Place', 'Rows', 'Ready', 'Wait', 'Run', 'Own', 'Share', 'Status', 'Fails'];
const headings = ['', 'node', 'op', 'place', 'rows', 'ready', 'wait', 'run', 'own', 'share', 'status', 'if it fails'];
for (const d of document.querySelectorAll('details.run')) {
  d.addEventListener('toggle', () => {
    const table = document.createElement('table');
    headings.forEach((h) => { (table.tHead?.rows[0] ?? table.createTHead().insertRow()).append(Object.assign(document.createElement('th'), { textContent: h })); });
    const body = table.createTBody();
    for (const n of nodes[d.dataset.run]) {
      const row = body.insertRow();
      for (const c of columns) row.insertCell().textContent = n[c];
    }
    d.append(table);
  }, { once: true });
}

// The zoom: all timelines show the same part of the time axis, from and to in shares of the whole.
const plots = [...document.querySelectorAll('.plot')].map((plot) => {
  const width = plot.width.baseVal.value, left = plot.x.baseVal.value, outer = plot.parentNode.closest('svg');
  return { plot, width, left, outer, height: plot.height.baseVal.value, total: +plot.dataset.total,
    names: outer.querySelector('.names'), axis: outer.querySelector('.axis') };
});
let from = 0, to = 1;

const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
function time(ns, step) {
  if (ns < 1) return '0';
  const [size, unit] = units.find(([u]) => ns >= u) ?? units[3];
  return `${+(ns / size).toFixed(Math.max(0, Math.ceil(Math.log10(size / step))))} ${unit}`;
}

function element(name, attributes, text) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text) e.textContent = text;
  return e;
}

function zoom(a, b) {
  const span = Math.min(1, Math.max(b - a, 1e-6));
  from = Math.max(0, Math.min(a, 1 - span));
  to = from + span;
  for (const p of plots) {
    p.plot.setAttribute('viewBox', `${from * p.width} 0 ${span * p.width} ${p.height}`);
    drawAxis(p, span);
    drawNames(p, span);
  }
}

function drawAxis(p, span) {
  const visible = span * p.total;
  let step = 10 ** Math.floor(Math.log10(visible / 8));
  step *= [1, 2, 5, 10].find((f) => visible / (step * f) <= 10);
  step = Math.max(step, 1);
  p.axis.textContent = '';
  for (let t = Math.ceil(from * p.total / step) * step; t <= to * p.total; t += step) {
    const x = (t / p.total - from) / span * p.width, at = p.left + x;
    const anchor = x < 30 ? 'start' : x > p.width - 30 ? 'end' : 'middle';
    p.axis.append(element('line', { class: 'rule', x1: at, x2: at, y1: 18, y2: p.outer.viewBox.baseVal.height }),
      element('text', { class: 'soft', x: at, y: 12, 'text-anchor': anchor }, time(t, step)));
  }
}

const cell = 11 * 0.605;
const cells = (text) => [...text].reduce((sum, c) => sum + (c > '\u1100' ? 2 : 1), 0);
function drawNames(p, span) {
  p.names.textContent = '';
  for (const r of p.plot.querySelectorAll('[data-l]')) {
    const height = r.height.baseVal.value;
    if (height < 11) continue;
    const x1 = Math.max(0, (r.x.baseVal.value / p.width - from) / span * p.width);
    const x2 = Math.min(p.width, ((r.x.baseVal.value + r.width.baseVal.value) / p.width - from) / span * p.width);
    const text = [r.dataset.l, r.dataset.s].find((t) => cells(t) * cell + 8 <= x2 - x1);
    if (text) p.names.append(element('text', { x: x1 + 4, y: r.y.baseVal.value + height / 2 + 4, class: r.matches('.wait, .sleep') ? '' : 'on' }, text));
  }
}

for (const b of document.querySelectorAll('[data-zoom]')) {
  b.addEventListener('click', () => {
    const factor = +b.dataset.zoom, middle = (from + to) / 2, half = (to - from) / 2 * factor;
    if (factor) zoom(middle - half, middle + half); else zoom(0, 1);
  });
}
for (const p of plots) {
  const share = (e) => {
    const box = p.outer.getBoundingClientRect(), x = (e.clientX - box.left) / box.width * p.outer.viewBox.baseVal.width - p.left;
    return from + Math.max(0, Math.min(1, x / p.width)) * (to - from);
  };
  let begin = null;
  p.outer.addEventListener('pointerdown', (e) => { begin = share(e); });
  p.outer.addEventListener('pointerup', (e) => {
    const end = share(e);
    if (begin !== null && Math.abs(end - begin) > (to - from) / 100) zoom(Math.min(begin, end), Math.max(begin, end));
    begin = null;
  });
}
document.querySelectorAll('.zoom').forEach((z) => { z.hidden = false; });
