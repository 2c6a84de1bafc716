class AppError extends Error {
  constructor(message, options) { super(message, options); this.name = new.target.name; }
  get [Symbol.toStringTag]() { return 'AppError'; }
}
class NotFound extends AppError { constructor(what, o) { super(`${what} not found`, o); this.what = what; } }
class Fatal extends AppError { name = 'FatalField'; }
const store = { a: 1 };
const get = (k) => { if (!(k in store)) throw new NotFound(k); return store[k]; };
const load = (k) => { try { return get(k); } catch (cause) { throw new AppError('load failed', { cause }); } };
export default function () {
  const log = [];
  for (const k of ['a', 'b']) try { log.push(load(k)); } catch (e) { log.push([e.name, e.message, e.cause.name, e.cause.what, e.cause instanceof NotFound, e instanceof NotFound, `${e}`]); }
  const f = new Fatal('x');
  const plain = new Error('m', { cause: 0 }), none = new Error('m', {}), undef = new Error(undefined);
  const agg = new AggregateError([new TypeError('t'), 5], 'many');
  return { log, fatal: String(f), cause: [plain.cause, 'cause' in none, Object.hasOwn(undef, 'message'), undef.message, Object.keys(plain)], agg: [agg.name, agg.errors.length, agg.errors[0].name, agg.message], noNew: Error('q') instanceof Error, types: [TypeError, RangeError, SyntaxError, URIError, EvalError, ReferenceError].map((E) => [new E('z').toString(), Object.getPrototypeOf(E) === Error, E.prototype.name]), str: [String(Object.assign(new Error('a'), { name: '' })), String(Object.assign(new Error(''), { name: 'N' })), Error.prototype.toString.call({ name: 'X', message: 'Y' })], tag: Object.prototype.toString.call(f), coerced: new Error(123).message === '123' };
}
