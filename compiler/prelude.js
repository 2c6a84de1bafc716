// The operations that rewritten plan code calls. Each takes the way of JavaScript for plain values
// and hands a token, a value that is known only at run time, to the host. The function runs before
// the plan and keeps what it needs of the built-in objects, so a plan cannot change it.
(function (host, mathNames) {
  "use strict";
  const apply = Reflect.apply;
  const pow = Math.pow;
  const token = (v) => typeof v === "object" && v !== null && host.isToken(v);

  const plain = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    "%": (a, b) => a % b,
    "**": (a, b) => {
      const x = -(-a), y = -(-b); // numbers, or big integers
      return typeof x === "number" && typeof y === "number" ? pow(x, y) : x ** y;
    },
    "&": (a, b) => a & b,
    "|": (a, b) => a | b,
    "^": (a, b) => a ^ b,
    "<<": (a, b) => a << b,
    ">>": (a, b) => a >> b,
    ">>>": (a, b) => a >>> b,
    "==": (a, b) => a == b,
    "!=": (a, b) => a != b,
    "===": (a, b) => a === b,
    "!==": (a, b) => a !== b,
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    "in": (a, b) => a in b,
  };
  const plainPrefix = {
    "-": (a) => -a,
    "+": (a) => +a,
    "~": (a) => ~a,
    "!": (a) => !a,
  };

  const infix = (op, a, b, site) =>
    token(a) || token(b) ? host.infix(op, a, b, site) : plain[op](a, b);

  // A name of an object that host functions answer for. Its symbols make a token that reaches an
  // implicit conversion or a loop an error.
  const prototype = Object.freeze(Object.create(null, {
    [Symbol.toPrimitive]: { value(hint) { return host.convert(this, hint); } },
    [Symbol.iterator]: { get() { return host.iterate(this); } },
  }));

  // The callbacks of these methods answer with a condition.
  for (const name of ["filter", "some", "every", "find", "findIndex", "findLast", "findLastIndex"]) {
    const original = Array.prototype[name];
    if (original === undefined) continue;
    const method = {
      [name](callback, self) {
        if (typeof callback !== "function") return apply(original, this, [callback, self]);
        return apply(original, this, [(...args) => host.condition(apply(callback, self, args))]);
      },
    }[name];
    Object.defineProperty(Array.prototype, name, { value: method, writable: true, configurable: true });
  }
  const arrayIncludes = Array.prototype.includes;
  const { includes } = {
    includes(x) {
      return token(x) ? host.includes(this, x) : apply(arrayIncludes, this, arguments);
    },
  };
  Object.defineProperty(Array.prototype, "includes", { value: includes, writable: true, configurable: true });
  for (const name of mathNames) {
    const original = Math[name];
    if (typeof original !== "function") continue;
    const method = {
      [name](...args) {
        for (let i = 0; i < args.length; i++) if (token(args[i])) return host.math(name, args);
        return apply(original, Math, args);
      },
    }[name];
    Object.defineProperty(Math, name, { value: method, writable: true, configurable: true });
  }

  // Of the parts of a template every second one is a string of the plan.
  const template = (site, text, ...parts) => {
    for (const part of parts) text = token(text) || token(part) ? host.infix("+", text, part, site) : `${text}${part}`;
    return text;
  };

  // The right side of these comes as a function, because it may have to be skipped.
  const and = (a, b, site) => (token(a) ? host.infix("&&", a, b(), site) : a && b());
  const or = (a, b, site) => (token(a) ? host.infix("||", a, b(), site) : a || b());
  const nullish = (a, b, site) => (token(a) ? host.infix("??", a, b(), site) : a ?? b());
  const lazy = { "&&": and, "||": or, "??": nullish };

  // Modules are linked as ECMAScript wants it: each has its exports and imports before the body of any runs, and a body
  // runs after those of its imports, save in a cycle. Otherwise a name that has no value yet throws an error.
  const modules = Object.create(null);
  let entry;
  const module = (name, make) => {
    modules[name] = { make, exports: {}, imports: [], ran: false };
    entry ??= name;
  };
  const instantiate = (name) => {
    const m = modules[name];
    if (m.body === undefined) {
      m.body = m.make((specifier) => {
        const to = host.resolve(name, specifier);
        if (typeof to !== "string") return to;
        m.imports.push(to);
        return instantiate(to);
      }, m);
      m.body.next();
    }
    return m.exports;
  };
  const run = (name) => {
    const m = modules[name];
    if (m.ran) return;
    m.ran = true;
    for (let i = 0; i < m.imports.length; i++) run(m.imports[i]);
    m.body.next();
  };
  const link = () => {
    const exports = instantiate(entry);
    run(entry);
    return exports;
  };

  return {
    prototype,
    module,
    link,
    calls: Object.freeze({
      infix,
      template,
      and,
      or,
      nullish,
      prefix: (op, a, site) => (token(a) ? host.prefix(op, a, site) : plainPrefix[op](a)),
      assign: (op, object, key, value, site) =>
        (object[key] = lazy[op] ? lazy[op](object[key], value, site) : infix(op, object[key], value(), site)),
      test: (a, site) => (token(a) ? host.test(a, site) : a),
      choose: (a, then, other, site) => (token(a) ? host.choose(a, then(), other(), site) : a ? then() : other()),
      value: (a, site) => (token(a) ? host.value(a, site) : a),
      each: (a, site) => (token(a) ? host.each(a, site) : a),
      at: host.at,
    }),
  };
})
