const OP = Object.freeze(Object.fromEntries(['PUSH', 'ADD', 'MUL', 'SUB', 'DUP', 'SWAP', 'JMP', 'JZ', 'OUT', 'HALT', 'CALL', 'RET'].map((n, i) => [n, i])));
const NAMES = Object.entries(OP).reduce((a, [k, v]) => ((a[v] = k), a), []);
function assemble(src) { const labels = {}, code = []; const fix = []; for (const line of src.trim().split('\n')) { const [op, arg] = line.trim().split(/\s+/); if (op.endsWith(':')) { labels[op.slice(0, -1)] = code.length; continue; } code.push(OP[op]); if (arg !== undefined) { if (isNaN(arg)) fix.push([code.length, arg]); code.push(+arg); } } for (const [i, l] of fix) code[i] = labels[l]; return code; }
function run(code, limit = 500) {
  const st = [], calls = [], out = []; let pc = 0, n = 0;
  for (;;) {
    if (n++ > limit) throw new RangeError('step limit');
    switch (code[pc++]) {
      case OP.PUSH: st.push(code[pc++]); break;
      case OP.ADD: case OP.MUL: case OP.SUB: { const b = st.pop(), a = st.pop(); const op = code[pc - 1]; st.push(op === OP.ADD ? a + b : op === OP.MUL ? a * b : a - b); break; }
      case OP.DUP: st.push(st.at(-1)); break;
      case OP.SWAP: st.push(...st.splice(-2).reverse()); break;
      case OP.JZ: if (st.pop() !== 0) { pc++; break; }
      case OP.JMP: pc = code[pc]; break;
      case OP.CALL: calls.push(pc + 1); pc = code[pc]; break;
      case OP.RET: pc = calls.pop(); break;
      case OP.OUT: out.push(st.pop()); break;
      case OP.HALT: return { out, n, st };
      default: throw new TypeError('bad op ' + NAMES[code[pc - 1]]);
    }
  }
}
const fact = assemble('PUSH 1\nPUSH 6\nloop:\nDUP\nJZ done\nDUP\nCALL step\nPUSH 1\nSUB\nJMP loop\nstep:\nSWAP\nDUP\nOUT\nRET\ndone:\nOUT\nHALT');
const result = run(fact);
export default function () {
  const err = (c) => { try { return run(c); } catch (e) { return [e.name, e.message]; } };
  return { fact, result, errs: [err([OP.JMP, 0]), err([99])], names: NAMES };
}
