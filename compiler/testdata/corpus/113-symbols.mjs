const A = Symbol('A'), B = Symbol(), REG = Symbol.for('app.key');
const o = { [A]: 1, [B]: 2, [REG]: 3, str: 4, [Symbol.toStringTag]: 'Custom' };
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
const listed = Object.getOwnPropertySymbols(o).map((s) => s.description);
export default function () {
  const wrapper = Object(A);
  const Color = Object.freeze({ RED: Symbol('red'), BLUE: Symbol('blue') });
  const name = (c) => { switch (c) { case Color.RED: return 'r'; case Color.BLUE: return 'b'; default: return '?'; } };
  return {
    listed, keys: Object.keys(o), json: JSON.stringify(o), tag: String(o), descs: [A.description, B.description, REG.description, Symbol('').description],
    str: [A.toString(), String(B), `${String(REG)}`], keyFor: [Symbol.keyFor(REG), Symbol.keyFor(A), err(() => Symbol.keyFor('x'))],
    errs: [err(() => A + ''), err(() => `${A}`), err(() => +A), err(() => new Symbol()), err(() => A < 1), err(() => [A].join()), err(() => A | 0)],
    truthy: [!A, A ? 1 : 0, A == A, A == wrapper, A === wrapper, wrapper == A, typeof wrapper, o[wrapper]], color: [name(Color.RED), name(Color.BLUE), name(Symbol('red'))],
    spread: Reflect.ownKeys({ ...o }).length, in: A in o, del: (() => { const c = { ...o }; delete c[A]; return Object.getOwnPropertySymbols(c).length; })(), map: new Map([[A, 'v']]).get(A), wellKnown: [Symbol.iterator.toString(), Symbol.hasInstance.description, Symbol.iterator === Symbol.for('Symbol.iterator')], fnName: ({ [A]() {} })[A].name + ({ [B]: () => 1 })[B].name, freezeArr: Object.isFrozen(A), assignProp: err(() => { A.x = 1; }),
  };
}
