class ParseError extends SyntaxError { constructor(m, at) { super(`${m} at ${at}`); this.name = 'ParseError'; this.at = at; } }
const OPS = { '+': [1, (a, b) => a + b], '-': [1, (a, b) => a - b], '*': [2, (a, b) => a * b], '/': [2, (a, b) => a / b], '%': [2, (a, b) => a % b], '^': [3, (a, b) => a ** b, true] };
const FNS = { max: Math.max, min: Math.min, abs: Math.abs, sqrt: Math.sqrt };
function parse(src, env = {}) {
  let i = 0;
  const ws = () => { while (src[i] === ' ') i++; return src[i]; };
  const eat = (c) => ws() === c && (i++, true);
  const need = (c) => { if (!eat(c)) throw new ParseError(`expected ${c}`, i); };
  function atom() {
    const c = ws();
    if (eat('(')) { const v = expr(0); need(')'); return v; }
    if (eat('-')) return -expr(2);
    const m = /\d+(\.\d+)?|[a-z]\w*/y; m.lastIndex = i;
    const t = m.exec(src)?.[0];
    if (!t) throw new ParseError(`unexpected ${c ?? 'end'}`, i);
    i = m.lastIndex;
    if (/\d/.test(t[0])) return +t;
    if (eat('(')) { const args = []; if (!eat(')')) { do args.push(expr(0)); while (eat(',')); need(')'); } return FNS[t](...args); }
    if (!(t in env)) throw new ParseError(`unknown ${t}`, i);
    return env[t];
  }
  function expr(min) { let l = atom(); for (let op; (op = OPS[ws()]) && op[0] >= min; ) { i++; l = op[1](l, expr(op[0] + (op[2] ? 0 : 1))); } return l; }
  const v = expr(0);
  if (ws() !== undefined) throw new ParseError('trailing ' + src[i], i);
  return v;
}
const top = ['1+2*3', '(1+2)*3', '2^3^2', '-2^2', '10-4-3', '8/4/2', '7%4*2', 'max(1, x*2, min(9,8))', '1.5*-x'].map((s) => parse(s, { x: 3 }));
export default function () {
  const errs = ['1+', '(1', '1 2', 'y', '2*)', ''].map((s) => { try { return parse(s); } catch (e) { return [e.name, e.message, e.at, e instanceof SyntaxError]; } });
  return { top, errs };
}
