import { LispError } from './errors.mjs';
const TOKEN = /\s*([()]|"[^"]*"|[^\s()"]+)/y;
function* tokens(src) { TOKEN.lastIndex = 0; for (let m; (m = TOKEN.exec(src)); ) yield m[1]; }
export function read(src) {
  const it = [...tokens(src)][Symbol.iterator]();
  const form = (t) => {
    if (t.done) throw new LispError('eof'); else if (t.value === ')') throw new LispError('unexpected )');
    if (t.value !== '(') return t.value[0] === '"' ? t.value.slice(1, -1) : isNaN(t.value) ? Symbol.for(t.value) : Number(t.value);
    const out = []; for (let n; (n = it.next()).value !== ')'; ) out.push(form(n));
    return out;
  };
  return form(it.next());
}
export const print = (v) => Array.isArray(v) ? `(${v.map(print).join(' ')})` : typeof v === 'symbol' ? v.description : typeof v === 'string' ? JSON.stringify(v) : typeof v === 'function' ? '<fn>' : String(v);
