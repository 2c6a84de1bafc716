const compose = (...fs) => (x) => fs.reduceRight((acc, f) => f(acc), x);
const pipe = (...fs) => (x) => fs.reduce((acc, f) => f(acc), x);
const curry = (fn) => function c(...args) { return args.length >= fn.length ? fn(...args) : (...more) => c(...args, ...more); };
const memo = (fn, cache = new Map()) => (n) => cache.has(n) ? cache.get(n) : (cache.set(n, fn(n)), cache.get(n));
const inc = (x) => x + 1, dbl = (x) => x * 2;
const volume = curry((a, b, c) => a * b * c);
const partials = [volume(2)(3)(4), volume(2, 3)(4), volume(2)(3, 4), volume(2, 3, 4)];
export default function () {
  let hits = 0;
  const slow = memo((n) => { hits++; return n * n; });
  const fib = memo((n) => (n < 2 ? n : fib(n - 1) + fib(n - 2)));
  const Y = (f) => ((x) => x(x))((x) => f((v) => x(x)(v)));
  const fact = Y((self) => (n) => (n ? n * self(n - 1) : 1));
  const once = (f, done, r) => (...a) => (done ? r : ((done = true), (r = f(...a))));
  const init = once((a) => a + '!');
  return { partials, comp: [compose(inc, dbl)(5), pipe(inc, dbl)(5), compose()(9)], memo: [slow(4), slow(4), slow(5), hits], fib: fib(80), fact: fact(10), once: [init('a'), init('b')] };
}
