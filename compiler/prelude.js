// The operations that rewritten plan code calls. Each takes the way of JavaScript for plain values
// and hands a token, a value that is known only at run time, to the host. The function runs before
// the plan and keeps what it needs of the built-in objects, so a plan cannot change it.
(function (host, mathNames) {
  "use strict";
  const apply = Reflect.apply;
  const pow = Math.pow;
  const token = (v) => typeof v === "object" && v !== null && host.isToken(v);

  // The engine takes 0 for the low 32 bits of a number from 2^63 on.
  const fold = (v) => (typeof v === "number" && (v >= 2 ** 63 || v < -(2 ** 63)) ? v % 2 ** 32 : v);
  const bits = (v) => fold(-(-v)); // which makes a number or a BigInt of v

  const { isView } = ArrayBuffer, { isArray } = Array;
  const nativeSet = Set, nativeMap = Map;
  const integers = Object.freeze(["Int8Array", "Uint8Array", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array"]);

  // Texts and big integers are as long as elsewhere, and lists as long as a plan can need.
  const textMax = 2 ** 29 - 24, bigMax = 2n ** 30n, listMax = 2 ** 25;
  const fits = (length) => { if (length > textMax) throw new RangeError("Invalid string length"); };
  const fitsBig = (x, y) => { if (typeof x === "bigint" && typeof y === "bigint" && y > bigMax && x !== 0n) throw new RangeError("Maximum BigInt size exceeded"); };
  const fitsList = (length) => { if (length > listMax) host.refuse(`plan code makes lists of at most ${listMax} elements, not ${length}`, "write the elements that the plan needs"); };

  const plain = {
    "+": (a, b) => {
      const sum = a + b;
      if (typeof sum === "string") fits(sum.length);
      return sum;
    },
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    "%": (a, b) => a % b,
    "**": (a, b) => {
      const x = -(-a), y = -(-b); // numbers, or big integers
      if (x !== 1n && x !== -1n) fitsBig(x, y);
      return typeof x === "number" && typeof y === "number" ? pow(x, y) : x ** y;
    },
    "&": (a, b) => bits(a) & bits(b),
    "|": (a, b) => bits(a) | bits(b),
    "^": (a, b) => bits(a) ^ bits(b),
    "<<": (a, b) => {
      const x = bits(a), y = bits(b);
      fitsBig(x, y);
      return x << y;
    },
    ">>": (a, b) => {
      const x = bits(a), y = bits(b);
      if (typeof y === "bigint") fitsBig(x, -y);
      return x >> y;
    },
    ">>>": (a, b) => bits(a) >>> bits(b),
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
    "~": (a) => ~bits(a),
    "!": (a) => !a,
  };

  const infix = (op, a, b, site) => {
    if (token(a) || token(b)) return host.infix(op, a, b, site);
    const hint = hints[op] ?? "number";
    if (hint === "" || hint === "one" && (isObject(a) === isObject(b) || a === null || a === undefined || b === null || b === undefined)) return plain[op](a, b);
    return plain[op](bare(a, hint), bare(b, hint));
  };
  // How an operator converts an object; == converts one that stands beside a plain value.
  const hints = { "+": "default", "==": "one", "!=": "one", "===": "", "!==": "", "in": "" };
  // An object without a prototype lacks what converts the others.
  const bare = (v, hint) => (typeof v === "object" && v !== null && v[engineConversion] === undefined ? apply(converts, v, [hint === "one" ? "default" : hint]) : v);

  // The engine asks an iterator of a plan by itself whether it is done. So the plan has another Symbol.iterator, and the
  // engine finds by its own one what checks the answers.
  const engineIterator = Symbol.iterator;
  const planIterator = Symbol("Symbol.iterator");
  // So does what converts an object: the conversion may give a token.
  const engineConversion = Symbol.toPrimitive;
  const planConversion = Symbol("Symbol.toPrimitive");

  // A name of an object that host functions answer for. Its symbols make a token that reaches an
  // implicit conversion or a loop an error, and its own prototype makes it one to ask for the class.
  const prototype = new Proxy(Object.freeze(Object.create(null, {
    [engineConversion]: { value(hint) { return host.convert(this, hint); } },
    [planConversion]: { value(hint) { return host.convert(this, hint); } },
    [engineIterator]: { get() { return host.iterate(this); } },
    [planIterator]: { get() { return host.iterate(this); } },
    [Symbol.species]: { get() { return host.look("constructor", this); } },
  })), { getPrototypeOf() { host.look("instanceof"); return null; } });

  // JavaScript's own code may carry a token and may not look at one. Most functions that look ask an object for its
  // value, which the prototype refuses. The others are replaced: replace calls make with the original.
  const describe = Object.getOwnPropertyDescriptor, define = Object.defineProperty;
  const replace = (object, name, make) => {
    const d = describe(object, name);
    if (d === undefined) return;
    const field = d.get === undefined ? "value" : "get";
    const original = d[field];
    if (typeof original !== "function") return;
    const made = make(original);
    define(made, "name", describe(original, "name"));
    define(made, "length", describe(original, "length"));
    d[field] = made;
    define(object, name, d);
  };
  // first returns the first token among the values, or undefined.
  const first = (values) => {
    for (let i = 0; i < values.length; i++) if (token(values[i])) return values[i];
  };
  // guard refuses tokens as the receiver and as arguments, save those from carried to the one before end.
  const guard = (what, object, names, carried = 0, end = 0, check) => {
    for (const name of names) {
      const label = what + (typeof name === "symbol" ? "[" + name.description + "]" : "." + name);
      replace(object, name, (original) => ({
        method(...args) {
          let seen = token(this) ? this : undefined;
          for (let i = 0; i < args.length && seen === undefined; i++) if ((i < carried || i >= end) && token(args[i])) seen = args[i];
          if (seen === undefined && check !== undefined) seen = check(this, args);
          return seen === undefined ? apply(original, this, args) : host.look(label, seen);
        },
      }).method);
    }
  };
  const apart = ["constructor", engineIterator, planIterator, engineConversion, planConversion];
  const all = (object) => Reflect.ownKeys(object).filter((name) => !apart.includes(name));

  const isObject = (v) => (typeof v === "object" && v !== null) || typeof v === "function";

  // Behind a token both sides of ?: run, and so may change only what they have made: tries is the number of sides that have
  // begun so, and since that of the one that runs. births has the objects that come into being in a try.
  let tries = 0, since = 0, why;
  const births = new WeakMap(), targets = new WeakMap(); // what is behind a proxy
  const { get: getBirth, set: setBirth } = WeakMap.prototype;
  const born = (v) => {
    if (since > 0 && isObject(v) && !token(v)) apply(setBirth, births, [v, tries]);
    return v;
  };
  const own = (made, at) => { if (made < since) host.changed(why, at); };
  const mine = (v, at = -1) => {
    if (since > 0 && isObject(v) && !token(v)) {
      let of = isView(v) ? v.buffer : v; // whose bytes change
      for (let behind = of; behind !== undefined; behind = apply(getBirth, targets, [of])) of = behind;
      own(apply(getBirth, births, [of]) ?? 0, at);
    }
    return v;
  };
  const attempt = (side, op, a, site) => {
    const outer = since, before = why;
    since = ++tries;
    why = [op, a, site];
    host.trying(true);
    try {
      return side();
    } finally {
      since = outer;
      why = before;
      host.trying(since > 0);
    }
  };
  // option reads a member that tells JavaScript's own code what to do. A proxy would see it.
  const option = (v, name) => (isObject(v) && !token(v) && apply(getBirth, targets, [v]) === undefined ? v[name] : undefined);
  // JavaScript drops a value that a constructor returns, and one that stands for a prototype. A token would be an object.
  const { getPrototypeOf } = Object;
  const constructed = (v, site) => {
    const seen = first([v]) ?? (isObject(v) && apply(getBirth, targets, [v]) === undefined ? first([getPrototypeOf(v)]) : undefined);
    if (seen !== undefined) return host.look("new", seen, site);
    return since > 0 && (isView(v) || v instanceof ArrayBuffer || host.builtIn(v)) ? born(v) : v; // A constructor of the plan tells of its own, and may return an older one.
  };
  const heritage = (v, site) => (typeof v === "function" && token(option(v, "prototype")) ? host.look("extends", v.prototype, site) : v);
  const ancestor = (v, site) => (token(v) ? host.look("__proto__", v, site) : v);
  const typedArray = Object.getPrototypeOf(Int8Array.prototype);
  const generator = Object.getPrototypeOf((function* () {}).prototype);
  const iterator = Object.getPrototypeOf(generator);
  const ended = (result) => {
    if (!isObject(result)) return result;
    const plain = describe(result, "done");
    const done = result.done;
    if (!token(done) && plain !== undefined && plain.get === undefined) return result;
    if (token(done)) host.look("an iterator", done);
    return { done: !!done, get value() { return result.value; } };
  };
  // The engine's own iterators say by themselves when they are done.
  const natives = [generator, ...[[], new Map(), new Set(), "", "".matchAll(/a/g)].map((v) => Object.getPrototypeOf(v[engineIterator]()))].map((prototype) => {
    define(prototype, "next", { writable: false, configurable: false });
    return prototype.next;
  });
  const isOwn = (next) => natives.indexOf(next) >= 0;
  // A native iterator goes on. Generators ask by themselves.
  const step = (v, at) => {
    if (since > 0 && isObject(v) && !token(v) && natives.indexOf(v.next) > 0) mine(v, at);
    return v;
  };
  const iterates = (method) => (method === undefined || method === null || typeof method !== "function" ? method : function () {
    const inner = apply(method, this, []);
    if (!isObject(inner) || token(inner)) return inner;
    const next = inner.next;
    if (typeof next !== "function" || isOwn(next)) return inner;
    const pass = (name) => {
      const f = inner[name];
      return typeof f === "function" ? (...args) => ended(apply(f, inner, args)) : f;
    };
    return { next: (...args) => ended(apply(next, inner, args)), get return() { return pass("return"); }, get throw() { return pass("throw"); } };
  });
  define(Object.prototype, engineIterator, { get() { return iterates(this[planIterator]); } });
  for (const prototype of [Array.prototype, typedArray, Map.prototype, Set.prototype, String.prototype, iterator]) {
    const original = describe(prototype, engineIterator);
    define(prototype, planIterator, original);
    define(prototype, engineIterator, { get() {
      if (since > 0 && prototype === iterator) step(this);
      const method = this[planIterator];
      return method === original.value && (prototype !== iterator || isOwn(this.next)) ? method : iterates(method);
    } });
  }
  const converts = function (hint) {
    const method = this[planConversion];
    if (method !== undefined && method !== null) {
      const v = apply(method, this, [hint]);
      return token(v) ? host.convert(v, hint) : v;
    }
    for (const name of hint === "string" ? ["toString", "valueOf"] : ["valueOf", "toString"]) {
      const f = this[name];
      if (typeof f !== "function") continue;
      const v = apply(f, this, []);
      if (token(v)) return host.convert(v, hint);
      if (!isObject(v)) return v;
    }
    throw new TypeError("Cannot convert object to primitive value");
  };
  define(Object.prototype, engineConversion, { get() { return isObject(this) ? converts : undefined; } });
  define(Symbol.prototype, planConversion, describe(Symbol.prototype, engineConversion));
  const symbol = Symbol;
  const planSymbol = function Symbol(...args) {
    if (new.target !== undefined) throw new TypeError("Symbol is not a constructor");
    return symbol(...args);
  };
  for (const name of Reflect.ownKeys(symbol)) {
    const d = describe(symbol, name);
    define(planSymbol, name, d.value === engineIterator ? { ...d, value: planIterator } : d.value === engineConversion ? { ...d, value: planConversion } : d);
  }
  define(symbol.prototype, "constructor", { value: planSymbol });
  define(globalThis, "Symbol", { value: planSymbol });

  // A descriptor carries a value; its other members are conditions.
  const inDescriptor = (d) => (typeof d === "object" && d !== null ? first([d.enumerable, d.configurable, d.writable]) : undefined);
  const inDescriptors = (all) => (typeof all === "object" && all !== null ? first(Object.values(all).map(inDescriptor)) : undefined);
  guard("Object", Object, ["defineProperty"], 0, 0, (_, args) => inDescriptor(args[2]));
  guard("Object", Object, ["defineProperties", "create"], 0, 0, (_, args) => inDescriptors(args[1]));
  guard("Reflect", Reflect, ["defineProperty"], 0, 0, (_, args) => inDescriptor(args[2]));
  guard("Object", Object, all(Object).filter((name) => !["defineProperty", "defineProperties", "create"].includes(name)));
  guard("Reflect", Reflect, ["set"], 2, 3);
  guard("Reflect", Reflect, all(Reflect).filter((name) => !["set", "defineProperty", "apply", "construct"].includes(name)));
  guard("Object.prototype", Object.prototype, all(Object.prototype), 0, 0, (self) => first([option(self, Symbol.toStringTag)]));
  const heir = describe(Object.prototype, "__proto__");
  define(Object.prototype, "__proto__", { ...heir, set(v) {
    const seen = first([this, v]);
    if (isObject(this)) host.fixed(this);
    return seen === undefined ? apply(heir.set, mine(this), [v]) : host.look("__proto__", seen);
  } });
  for (const object of [Object, Reflect]) {
    replace(object, "setPrototypeOf", (original) => ({
      method(v, ...more) {
        if (isObject(v)) host.fixed(v);
        return apply(original, object, [v, ...more]);
      },
    }).method);
  }
  guard("Array.prototype", Array.prototype, ["concat"], 0, Infinity, (self, args) => first([self, ...args].map((v) => option(v, Symbol.isConcatSpreadable))) ?? args.find((v) => host.isSet(v)));
  // Of a list JavaScript takes the elements.
  const listIn = (v, depth) => (isArray(v) && depth >= 0 ? v.map((x) => listIn(x, depth - 1)).find((x) => x !== undefined) : depth >= 0 && host.isSet(v) ? v : undefined);
  guard("Array.prototype", Array.prototype, ["flat"], 0, 0, (self, args) => listIn(self, args[0] === undefined ? 1 : +args[0]));
  replace(Array.prototype, "flatMap", (original) => ({
    flatMap(f, self) {
      return apply(original, this, typeof f !== "function" ? [f, self] : [function (...args) {
        const v = apply(f, this, args), seen = listIn(v, 0);
        return seen === undefined ? v : host.look("Array.prototype.flatMap", seen);
      }, self]);
    },
  }).flatMap);
  guard("Array", Array, ["isArray"]);
  for (const made of [Number, Boolean, BigInt, planSymbol]) {
    guard(made.name, made, all(made).filter((name) => made[name] !== globalThis[name]));
    guard(made.name + ".prototype", made.prototype, all(made.prototype));
  }
  // The engine drops the sign of fractions.
  replace(Number.prototype, "toString", (original) => ({
    method(...args) {
      return typeof this === "number" && this < 0 && args[0] !== undefined ? "-" + apply(original, -this, args) : apply(original, this, args);
    },
  }).method);
  // The engine drops the sign of nothing.
  replace(globalThis, "parseInt", (original) => ({
    parseInt(...args) {
      const v = original(...args);
      return v === 0 && !token(args[0]) && /^\s*-/.test(`${args[0]}`) ? -0 : v;
    },
  }).parseInt);
  define(Number, "parseInt", { value: parseInt });
  // Integers of views are the low bits of any number, and what is no number has one pattern of bits.
  const { get: bufferOf } = describe(typedArray, "buffer");
  const quiet = (v, from = 0, count = v.length) => { if (isView(v) && v[Symbol.toStringTag] === "Float64Array" && from < v.length) host.quiet(apply(bufferOf, v, []), v.byteOffset + 8 * from, count); };
  replace(typedArray, "buffer", (original) => ({
    get() {
      const buffer = apply(original, this, []);
      quiet(this);
      return buffer;
    },
  }).get);
  for (const name of ["fill", "set"]) {
    replace(typedArray, name, (original) => ({
      method(...args) {
        const v = apply(original, this, args);
        quiet(this);
        return v;
      },
    }).method);
  }
  const integral = (v) => v !== undefined && isView(v) && integers.includes(v[Symbol.toStringTag]);
  for (const name of ["setInt8", "setUint8", "setInt16", "setUint16", "setInt32", "setUint32", "setFloat64"]) {
    replace(DataView.prototype, name, (original) => ({
      method(at, v, ...more) {
        if (name !== "setFloat64" || !(v !== v)) return apply(original, this, [at, name === "setFloat64" || token(v) ? v : bits(v), ...more]);
        const order = more[0] ? [0, 0x7ff80000] : [0x7ff80000, 0];
        this.setFloat64(at, 0);
        for (const i of [0, 1]) this.setUint32(at + 4 * i, order[i], ...more);
      },
    }).method);
  }
  replace(typedArray, "fill", (original) => ({
    fill(v, ...more) { return apply(original, this, [integral(this) && !token(v) ? bits(v) : v, ...more]); },
  }).fill);
  replace(typedArray, "with", (original) => ({
    with(i, v) { return apply(original, this, [i, integral(this) && !token(v) ? bits(v) : v]); },
  }).with);
  replace(typedArray, "map", (original) => ({
    map(f, self) {
      if (typeof f !== "function" || !integral(this)) return apply(original, this, [f, self]);
      return apply(original, this, [(...args) => { const v = apply(f, self, args); return token(v) ? v : bits(v); }]);
    },
  }).map);
  const { map: mapped } = Array.prototype;
  const lowBits = (list) => (isObject(list) && !token(list) && !(list instanceof ArrayBuffer) && !integral(list) ? apply(mapped, Array.from(list), [(v) => (token(v) ? v : bits(v))]) : list);
  replace(typedArray, "set", (original) => ({
    set(list, ...more) { return apply(original, this, [integral(this) ? lowBits(list) : list, ...more]); },
  }).set);
  const whole = new WeakSet();
  const isWhole = WeakSet.prototype.has;
  const construct = Reflect.construct, arrayProxy = Proxy;
  for (const name of integers) {
    const original = globalThis[name];
    const made = new arrayProxy(original, { construct: (f, args, target) => construct(f, args.length > 0 ? [lowBits(args[0]), ...args.slice(1)] : args, target === made ? f : target) });
    define(globalThis, name, { value: made });
    define(original.prototype, "constructor", { value: made });
    apply(WeakSet.prototype.add, whole, [made]);
  }
  for (const name of ["of", "from"]) {
    replace(Object.getPrototypeOf(Int8Array), name, (original) => ({
      method(...args) {
        if (!apply(isWhole, whole, [this])) return apply(original, this, args);
        if (name === "of") return new this(args);
        return new this(Array.from(...args));
      },
    }).method);
  }
  // The engine escapes a slash in another way.
  replace(RegExp.prototype, "source", (original) => ({
    get() {
      const text = apply(original, this, []);
      if (typeof text !== "string" || text.indexOf("\\u002f") < 0) return text;
      let inClass = false, out = "";
      for (let i = 0; i < text.length; i++) {
        if (text.slice(i, i + 6) === "\\u002f") { out += inClass ? "/" : "\\/"; i += 5; continue; }
        if (text[i] === "[") inClass = true;
        if (text[i] === "]") inClass = false;
        out += text[i] === "\\" ? text[i] + text[++i] : text[i];
      }
      return out;
    },
  }).get);
  replace(RegExp.prototype, "toString", () => ({ toString() { return "/" + this.source + "/" + this.flags; } }).toString);
  for (const name of ["at", "copyWithin", "entries", "fill", "find", "findIndex", "findLast", "findLastIndex", "flat", "flatMap", "includes", "keys", "toReversed", "toSorted", "toSpliced", "values"]) Array.prototype[Symbol.unscopables][name] = true;
  // A function's own members begin with these.
  const begins = ["length", "name", "prototype"];
  for (const [object, name] of [[Object, "getOwnPropertyNames"], [Reflect, "ownKeys"]]) {
    replace(object, name, (original) => ({
      method(v) {
        const names = apply(original, object, [v]);
        return typeof v === "function" ? [...begins.filter((name) => names.includes(name)), ...names.filter((name) => !begins.includes(name))] : names;
      },
    }).method);
  }
  guard("ArrayBuffer", ArrayBuffer, ["isView"]);
  guard("DataView.prototype", DataView.prototype, all(DataView.prototype));
  guard("String.prototype", String.prototype, ["toString", "valueOf"]);
  guard("Proxy", Proxy, ["revocable"]);
  guard("RegExp.prototype", RegExp.prototype, all(RegExp.prototype).filter((name) => typeof name === "symbol"), 0, 0, (self) => first(["flags", "global", "unicode", "sticky", "ignoreCase"].map((name) => option(self, name))));
  guard("Error.prototype", Error.prototype, ["toString"]);

  // These read members of what plan code has made.
  guard("Function.prototype", Function.prototype, ["bind"], 0, Infinity, (self) => first([option(self, "name"), option(self, "length")]));
  guard("String.prototype", String.prototype, ["startsWith", "endsWith", "includes"], 0, Infinity, (_, args) => first([option(args[0], Symbol.match)]));
  guard("Error", Error, ["isError"]);
  guard("JSON", JSON, ["isRawJSON"]);
  // The text of a function is that of rewritten code.
  replace(Function.prototype, "toString", (original) => ({
    toString() {
      const text = apply(original, this, []);
      return text.endsWith("[native code] }") ? text : host.refuse("plan code cannot read the text of a function", "write the text as a string");
    },
  }).toString);

  for (const name of ["repeat", "padStart", "padEnd"]) {
    replace(String.prototype, name, (original) => ({
      method(count, ...more) {
        const n = token(count) ? 0 : +bare(count, "number"); // A token is refused by the original.
        if (n < Infinity || name !== "repeat") fits(name === "repeat" ? n * (typeof this === "string" ? this.length : 1) : more[0] === "" ? 0 : n);
        return apply(original, this, [token(count) ? count : n, ...more]);
      },
    }).method);
  }
  for (const object of [Array.prototype, typedArray]) {
    replace(object, "join", (original) => ({
      method(...args) {
        if (isObject(this) && !token(this)) {
          fitsList(this.length);
          fits((this.length - 1) * (typeof args[0] === "string" ? args[0].length : 1));
        }
        return apply(original, this, args);
      },
    }).method);
  }
  replace(Array.prototype, "fill", (original) => ({
    method(...args) {
      if (isObject(this) && !token(this)) fitsList(this.length);
      return apply(original, this, args);
    },
  }).method);
  replace(String.prototype, "concat", (original) => ({
    method(...args) {
      const made = apply(original, this, args);
      if (typeof made === "string") fits(made.length);
      return made;
    },
  }).method);

  // An array with tokens answers about plain values only if these come first.
  const holds = (array, before) => {
    if (typeof array !== "object" || array === null) return;
    const to = before < 0 ? array.length : before;
    for (let i = 0; i < to; i++) if (token(array[i])) return array[i];
  };
  guard("TypedArray.prototype", typedArray, ["includes", "indexOf", "lastIndexOf"]);
  for (const name of ["indexOf", "lastIndexOf"]) {
    replace(Array.prototype, name, (original) => ({
      method(...args) {
        let seen = token(this) ? this : first(args);
        if (seen === undefined) {
          const at = apply(original, this, args);
          if (args[0] === undefined || typeof args[0] === "object" && args[0] !== null) return at;
          seen = holds(this, name === "indexOf" ? at : -1);
          if (seen === undefined) return at;
        }
        return host.look("Array.prototype." + name, seen);
      },
    }).method);
  }
  const { slice, indexOf } = Array.prototype;
  replace(Array.prototype, "includes", (original) => ({
    method(...args) {
      let seen = token(this) ? this : token(args[1]) ? args[1] : undefined;
      if (seen === undefined) {
        if (token(args[0])) return host.includes(args.length < 2 ? this : apply(slice, this, [args[1]]), args[0]);
        if (apply(original, this, args) || (args[0] === 0 && apply(indexOf, this, args) >= 0)) return true; // The engine finds no -0 so.
        if (args[0] === undefined || typeof args[0] === "object" && args[0] !== null) return false;
        seen = holds(this, -1);
        if (seen === undefined) return false;
      }
      return host.look("Array.prototype.includes", seen);
    },
  }).method);

  // A set holds tokens as what they are, so it answers no more about the values. Keys of maps are looked at at once.
  const holders = new WeakSet();
  const holder = { add: WeakSet.prototype.add, has: WeakSet.prototype.has };
  const holdsTokens = (v) => typeof v === "object" && v !== null && apply(holder.has, holders, [v]);
  const { values, has, size } = Object.getOwnPropertyDescriptors(Set.prototype);
  host.replaceAdder(Set.prototype, "add", (set, v) => {
    mine(set);
    if (token(v)) apply(holder.add, holders, [set]);
  });
  host.replaceAdder(Map.prototype, "set", (map, key) => {
    mine(map);
    if (token(key)) host.look("Map.prototype.set", key);
  });
  // A list of a set shows which of its members are equal. The names of keys tell them apart.
  const alike = (set) => {
    if (!holdsTokens(set) || apply(size.get, set, []) < 2) return undefined;
    for (const v of born(apply(values.value, set, []))) if (token(v) && host.varies(v)) return v;
  };
  const inSet = (set, args) => {
    for (const v of [set, ...args]) {
      if (holdsTokens(v)) for (const member of born(apply(values.value, v, []))) if (token(member)) return member;
    }
  };
  replace(Set.prototype, "has", (original) => ({
    method(v) {
      const seen = token(this) ? this : inSet(this, []);
      if (seen === undefined) return token(v) ? host.includes([...born(apply(values.value, this, []))], v) : apply(original, this, [v]);
      return apply(original, this, [v]) && !token(v) ? true : host.look("Set.prototype.has", seen);
    },
  }).method);
  for (const name of ["union", "intersection", "difference", "symmetricDifference", "isSubsetOf", "isSupersetOf", "isDisjointFrom"]) {
    replace(Set.prototype, name, (original) => ({
      method(other) {
        if (!isObject(other) || token(other) || typeof other.has !== "function") return apply(original, this, [other]);
        const like = { get size() { return other.size; }, has: (v) => host.condition(other.has(v)), keys: () => other.keys() };
        return apply(original, this, [other instanceof nativeSet || other instanceof nativeMap ? other : like]);
      },
    }).method);
  }
  guard("Set.prototype", Set.prototype, all(Set.prototype).filter((name) => !["add", "has", "clear", "values", "keys", "entries", "forEach"].includes(name)), 0, 0, inSet);
  guard("Set.prototype", Set.prototype, ["values", "entries", "forEach"], 0, Infinity, alike);
  for (const name of ["keys", planIterator]) define(Set.prototype, name, describe(Set.prototype, "values"));
  guard("Map.prototype", Map.prototype, ["get", "has", "delete"]);
  guard("WeakMap.prototype", WeakMap.prototype, ["set"], 1, 2);
  guard("WeakMap.prototype", WeakMap.prototype, ["get", "has", "delete"]);
  guard("WeakSet.prototype", WeakSet.prototype, ["add", "has", "delete"]);

  // A replacer may answer with a token, which JSON.stringify then takes for an object.
  replace(JSON, "stringify", (original) => ({
    stringify(value, replacer, space) {
      const seen = first([value, replacer, space]);
      if (seen !== undefined) return host.look("JSON.stringify", seen);
      const listed = isArray(replacer) ? first(replacer) : undefined;
      if (listed !== undefined) return host.look("JSON.stringify", listed);
      if (typeof replacer !== "function") return apply(original, JSON, [value, replacer, space]);
      return apply(original, JSON, [value, function (...args) {
        const v = apply(replacer, this, args);
        return token(v) ? host.look("JSON.stringify", v) : v;
      }, space]);
    },
  }).stringify);

  // The engine takes half a pair for another character, and refuses numbers beyond the doubles.
  const nested = (v) => {
    if (!isObject(v)) return;
    born(v);
    for (const name of Object.keys(v)) nested(v[name]);
  };
  replace(JSON, "parse", (original) => ({
    parse(text, reviver) {
      if (token(text)) return apply(original, JSON, [text]);
      const source = `${bare(text, "string")}`;
      if (host.halves(source)) host.refuse("JSON.parse of plan code reads no half of a pair, such as \\ud83c alone", "write the whole character");
      let v;
      try {
        v = apply(original, JSON, [source, reviver]);
      } catch (e) {
        if (e instanceof SyntaxError && `${e.message}`.startsWith("json: cannot unmarshal number")) host.refuse("JSON.parse of plan code reads no number beyond the range of doubles", "write a smaller number, or a string");
        throw e;
      }
      if (since > 0 && typeof reviver !== "function") nested(v);
      return v;
    },
  }).parse);

  // The engine knows no locales and drops what asks for one.
  for (const object of [Number.prototype, BigInt.prototype, Array.prototype, typedArray, String.prototype]) {
    for (const name of ["toLocaleString", "localeCompare", "toLocaleLowerCase", "toLocaleUpperCase"]) {
      replace(object, name, (original) => ({
        method(...args) {
          const from = name === "localeCompare" ? 1 : 0;
          if (args[from] !== undefined || args[from + 1] !== undefined || name === "toLocaleString") host.refuse("plans have no locales: the same source gives the same artifact");
          return apply(original, this, args);
        },
      }).method);
    }
  }

  // An object without a prototype has the plan's name alone.
  for (const object of [Array, Object.getPrototypeOf(Int8Array)]) {
    replace(object, "from", (original) => ({
      from(items, ...more) {
        const bare = isObject(items) && !token(items) && items[engineIterator] === undefined ? items[planIterator] : undefined;
        if (isObject(items) && !token(items) && typeof (bare ?? items[engineIterator]) !== "function") fitsList(items.length);
        return apply(original, this, [typeof bare === "function" ? { [planIterator]: () => apply(bare, items, []) } : items, ...more]);
      },
    }).from);
  }

  // Traps of these names answer with a condition.
  const conditions = ["has", "deleteProperty", "defineProperty", "set", "isExtensible", "preventExtensions"];
  const proxy = Proxy, regExp = RegExp, regExpTest = RegExp.prototype.test;
  // The engine takes no proxy and no object with a method behind instanceof.
  const hasInstance = Function.prototype[Symbol.hasInstance];
  const instance = (a, b) => {
    if ((typeof b !== "object" || b === null) && typeof b !== "function") return a instanceof b;
    const method = b[Symbol.hasInstance];
    if (method !== undefined && method !== null && method !== hasInstance) return !!host.condition(apply(method, b, [a]));
    if (typeof b !== "function" || !("prototype" in b)) return a instanceof b;
    if ((typeof a !== "object" || a === null) && typeof a !== "function") return false;
    const { prototype } = b;
    if ((typeof prototype !== "object" || prototype === null) && typeof prototype !== "function") throw new TypeError("Function has non-object prototype in instanceof check");
    for (let up = getPrototypeOf(a); up !== null; up = getPrototypeOf(up)) {
      if (token(up)) return host.look("instanceof", up), false;
      if (up === prototype) return true;
    }
    return false;
  };
  const traps = {
    get(handler, name, receiver) {
      const trap = Reflect.get(handler, name, receiver);
      if (name === "get" && typeof trap === "function") {
        return (object, key, self) => key === engineConversion ? converts : (key === engineIterator ? iterates(apply(trap, handler, [object, planIterator, self])) : apply(trap, handler, [object, key, self]));
      }
      if (name === "getOwnPropertyDescriptor" && typeof trap === "function") {
        return (...args) => {
          const d = apply(trap, handler, args);
          const seen = inDescriptor(d);
          return seen === undefined ? d : host.look("Proxy", seen);
        };
      }
      if (typeof trap !== "function" || !conditions.includes(name)) return trap;
      return (...args) => host.condition(apply(trap, handler, args));
    },
  };
  // The engine lacks properties of characters and matches nothing.
  const properties = /(?:^|[^\\])(?:\\\\)*\\[pP]\{/;
  const pattern = (re) => {
    if (re.unicode && properties.test(re.source)) host.refuse("plan code has no patterns with \\p{…}", "write ranges, as in [a-zà-ÿ]");
    return re;
  };
  // What the engine refuses may be a pattern elsewhere, so a plan that catches the error is refused all the same.
  const flawed = /^(?:Unmatched '\)'|Unterminated (?:group|character class)|Invalid regular expression \(re2\)[^]*(?:missing argument to repetition|invalid nested repetition|invalid character class range))/;
  const flagged = /^(?!.*(.).*\1)(?!.*u.*v|.*v.*u)[dgimsuvy]*$/;
  const compiled = (make, [, flags]) => {
    if (typeof flags === "string" && apply(regExpTest, /u.*u/, [flags])) throw new SyntaxError(`Invalid flags supplied to RegExp constructor '${flags}'`);
    try {
      return make();
    } catch (e) {
      const text = e instanceof SyntaxError ? `${e.message}` : "";
      if (text.startsWith("Invalid flags ") && apply(regExpTest, flagged, [`${flags}`])) host.refuse(`patterns of plan code have the flags g, i, m, s, u and y, not ${flags}`, "write a pattern without them");
      if (/^(?:Invalid (?!flags)|Unsupported|re2)/.test(text) && !apply(regExpTest, flawed, [text])) {
        host.refuse(text === "Invalid group" ? "patterns of plan code have no such group: (?:…), (?<name>…) and looking ahead and behind are there" : `patterns of plan code lack this: ${text}`, "write it with (?:…), classes such as [a-z] and quantifiers");
      }
      throw e;
    }
  };
  for (const [name, flags] of [["match", ""], ["matchAll", "g"], ["search", ""]]) {
    replace(String.prototype, name, (original) => ({
      method(re, ...more) {
        if (this === undefined || this === null || isObject(re) || re === null || re === undefined) return apply(original, this, [re, ...more]);
        return apply(original, this, [compiled(() => new regExp(re, flags), [re, flags]), ...more]);
      },
    }).method);
  }
  replace(regExp.prototype, "compile", (original) => ({ method(...args) { return compiled(() => apply(original, this, args), args); } }).method);
  for (const name of ["Boolean", "Object", "Array", "Proxy", "Number", "RegExp"]) {
    const original = globalThis[name];
    const refuse = (args) => (name === "Number" ? undefined : name === "RegExp" ? first([option(args[0], Symbol.match)]) : token(args[0]) && (name !== "Array" || args.length === 1) ? args[0] : name === "Proxy" ? first(args) : undefined);
    const change = (args) => {
      if (name === "Number" && typeof args[0] === "bigint") return [`${args[0]}`]; // The engine takes 64 bits only.
      if (name !== "Proxy" || typeof args[1] !== "object" || args[1] === null) return args;
      return [args[0], new proxy(args[1], traps)];
    };
    const made = new proxy(original, {
      apply(f, self, args) {
        const seen = refuse(args);
        if (seen !== undefined) return host.look(name, seen);
        if (name === "RegExp") return pattern(born(compiled(() => apply(f, self, args), args)));
        if (name === "Array" && args.length === 1) fitsList(args[0]);
        const v = apply(f, self, name === "Number" ? change(args) : args);
        return name === "Array" ? born(v) : v;
      },
      construct(f, args, target) {
        const seen = refuse(args);
        if (seen !== undefined) return Object(host.look(name, seen));
        if (name === "RegExp") return pattern(compiled(() => construct(f, args, target === made ? f : target), args));
        if (name === "Array" && args.length === 1) fitsList(args[0]);
        const v = construct(f, change(args), target === made ? f : target);
        if (name === "Object" && !isObject(args[0])) born(v);
        if (name === "Proxy") apply(setBirth, targets, [v, args[0]]);
        return v;
      },
    });
    Object.defineProperty(globalThis, name, { value: made });
    if (original.prototype) Object.defineProperty(original.prototype, "constructor", { value: made });
  }

  // The callbacks of these methods answer with a condition.
  for (const object of [Array.prototype, typedArray]) {
    for (const name of ["filter", "some", "every", "find", "findIndex", "findLast", "findLastIndex"]) {
      replace(object, name, (original) => ({
        method(callback, self) {
          if (typeof callback !== "function") return apply(original, this, [callback, self]);
          return apply(original, this, [(...args) => host.condition(apply(callback, self, args))]);
        },
      }).method);
    }
  }
  for (const name of mathNames) {
    replace(Math, name, (original) => ({
      method(...args) {
        if (first(args) !== undefined) return host.math(name, args);
        const converted = args.map((v) => bare(v, "number"));
        return apply(original, Math, name === "imul" || name === "clz32" ? converted.map(bits) : converted);
      },
    }).method);
  }

  // These change their object, or the first argument, or make an object.
  const wrap = (object, names, make) => { for (const name of names) replace(object, name, make); };
  const changer = (of) => (original) => ({
    method(...args) {
      if (since > 0) mine(of(this, args));
      return apply(original, this, args);
    },
  }).method;
  const receiver = (self) => self, argument = (_, args) => args[0];
  const maker = (original) => ({ method(...args) { return born(apply(original, this, args)); } }).method;
  wrap(Array.prototype, ["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin"], changer(receiver));
  wrap(typedArray, ["set", "sort", "reverse", "fill", "copyWithin"], changer(receiver));
  wrap(DataView.prototype, all(DataView.prototype).filter((name) => typeof name === "string" && name.startsWith("set")), changer(receiver));
  wrap(Map.prototype, ["delete", "clear"], changer(receiver));
  wrap(Set.prototype, ["delete", "clear"], changer(receiver));
  wrap(WeakMap.prototype, ["set", "delete"], changer(receiver));
  wrap(WeakSet.prototype, ["add", "delete"], changer(receiver));
  // The engine remembers captures of earlier rounds, and takes letters for each other that are the same only with the flag u.
  const remembers = Object.create(null), { exec } = RegExp.prototype;
  const folds = /[\u017f\u03f4\u1e9e\u1f80-\u1faf\u1fb3\u1fbc\u1fc3\u1fcc\u1fd3\u1fe3\u1ff3\u1ffc\u2126\u212a\u212b\ufb05\ufb06]|\\u(?:017[fF]|03[fF]4|1[eE]9[eE]|1[fF](?:[89abAB][0-9a-fA-F]|[bcfBCF][3cC]|[deDE]3)|2126|212[abAB]|[fF][bB]0[56])/;
  const { source: { get: sourceOf }, flags: { get: flagsOf } } = Object.getOwnPropertyDescriptors(RegExp.prototype);
  let clean; // the last text that has none of these letters
  const inFolds = (text) => {
    if (text === clean) return false;
    if (apply(exec, folds, [text]) !== null) return true;
    clean = text;
    return false;
  };
  for (const name of ["exec", "test"]) {
    replace(RegExp.prototype, name, (original) => ({
      method(...args) {
        if (!isObject(this) || !(this instanceof regExp) || token(args[0])) return apply(original, this, args);
        const source = apply(sourceOf, this, []), flags = apply(flagsOf, this, []), subject = `${args[0]}`;
        if (name === "exec" && (remembers[source] ??= host.forgets(source))) {
          host.refuse("plan code has no capturing group that a match may leave out in a round, or for nothing", "write (?:…) for it, or two patterns");
        }
        if (flags.includes("i") && !flags.includes("u") && (apply(exec, folds, [source]) !== null || inFolds(subject))) {
          host.refuse("plan code ignores the case of letters such as \\u212a, the sign of Kelvin, with the flags iu alone", "write the flags iu");
        }
        return apply(original, this, [subject]);
      },
    }).method);
  }
  wrap(RegExp.prototype, ["exec", "test"], changer((self) => (isObject(self) && (self.global || self.sticky) ? self : undefined)));
  // What an own exec answers is looked at.
  const answered = (v) => {
    const seen = first([v]) ?? first([option(v, "groups")]);
    return seen === undefined ? v : host.look("exec of a pattern", seen);
  };
  const nativeExec = describe(RegExp.prototype, "exec");
  const watched = (re) => (!isObject(re) || token(re) || apply(getBirth, targets, [re]) === undefined && re.exec === nativeExec.value ? re : new proxy(re, { get(of, name) {
    const v = of[name];
    if (name === "exec" && typeof v === "function") return (...args) => answered(apply(v, of, args));
    if (name !== "constructor" || !isObject(v)) return v;
    return { [Symbol.species]: function (_, flags) { return watched(new (v[Symbol.species] ?? regExp)(of, flags)); } };
  } }));
  for (const name of ["match", "matchAll", "replace", "search", "split"]) {
    replace(RegExp.prototype, Symbol[name], (original) => ({ method(...args) { return apply(original, watched(this), args); } }).method);
  }
  replace(RegExp.prototype, "test", (original) => ({
    method(text) {
      if (watched(this) === this) return apply(original, this, [text]);
      const { exec } = this, v = typeof exec === "function" ? answered(apply(exec, this, [`${text}`])) : apply(nativeExec.value, this, [text]);
      if (v !== null && !isObject(v)) throw new TypeError("RegExp exec method returned something other than an Object or null");
      return v !== null;
    },
  }).method);
  wrap(Object, ["assign", "defineProperty", "defineProperties", "setPrototypeOf", "freeze", "seal", "preventExtensions"], changer(argument));
  wrap(Reflect, ["set", "defineProperty", "deleteProperty", "setPrototypeOf", "preventExtensions"], changer(argument));
  wrap(Array.prototype, ["concat", "filter", "flat", "flatMap", "map", "slice", "splice", "toReversed", "toSorted", "toSpliced", "with"], maker);
  wrap(typedArray, ["filter", "map", "slice", "subarray", "toReversed", "toSorted", "with"], maker);
  wrap(Object, ["create", "entries", "fromEntries", "getOwnPropertyDescriptor", "getOwnPropertyDescriptors", "getOwnPropertyNames", "getOwnPropertySymbols", "groupBy", "keys", "values"], maker);
  wrap(Array, ["from", "of"], maker);
  wrap(Object.getPrototypeOf(Int8Array), ["from", "of"], maker);
  wrap(Map, ["groupBy"], maker);
  wrap(String.prototype, ["split", "match", "matchAll"], maker);
  wrap(RegExp.prototype, ["exec"], maker);
  wrap(Reflect, ["ownKeys"], maker);
  wrap(Reflect, ["construct"], (original) => ({ method(...args) { return constructed(apply(original, this, args)); } }).method);
  // A collection is born before its constructor fills it.
  for (const [name, add] of [["Map", "set"], ["Set", "add"], ["WeakMap", "set"], ["WeakSet", "add"]]) {
    const original = globalThis[name];
    const maker = new proxy(original, { construct(f, args, target) {
      if (since === 0 || args[0] === undefined || args[0] === null) return born(construct(f, args, target === maker ? f : target));
      const filled = born(construct(f, [], target === maker ? f : target));
      const adder = filled[add];
      for (const item of { [planIterator]: () => args[0][planIterator]() }) apply(adder, filled, add === "set" ? [item[0], item[1]] : [item]);
      return filled;
    } });
    define(globalThis, name, { value: maker });
    define(original.prototype, "constructor", { value: maker });
  }

  // The names of a module that has not run yet have no value, whoever asks for one.
  const settled = (v, name) => {
    if (!isObject(v) || token(v) || apply(getBirth, targets, [v]) !== undefined || describe(v, "__esModule") === undefined) return;
    for (const n of name === undefined ? Object.getOwnPropertyNames(v) : [name]) v[n];
  };
  for (const [object, name] of [[Object, "keys"], [Object, "hasOwn"], [Object, "getOwnPropertyDescriptor"], [Reflect, "getOwnPropertyDescriptor"]]) {
    replace(object, name, (original) => ({
      method(v, ...more) {
        if (name === "getOwnPropertyDescriptor" && isObject(v) && !token(v)) host.asks(v, more[0]);
        if (object !== Object || name !== "getOwnPropertyDescriptor") settled(v, name === "keys" ? undefined : more[0]); // Modules are linked by that one.
        return apply(original, object, [v, ...more]);
      },
    }).method);
  }
  // What the engine lacks would be undefined: a plan that asks for it would mean something else.
  const lacks = (what, object, names) => {
    for (const name of names) {
      define(object, name, {
        configurable: true,
        get() { return host.refuse(`plan code has no ${what}.${name}`, "it is newer or older than what plan code runs on: write it in another way"); },
        set(value) { define(this, name, { value, writable: true, enumerable: true, configurable: true }); },
      });
    }
  };
  lacks("Array", Array, ["fromAsync"]);
  lacks("ArrayBuffer.prototype", ArrayBuffer.prototype, ["detached", "maxByteLength", "resizable", "resize", "transfer", "transferToFixedLength"]);
  lacks("DataView.prototype", DataView.prototype, ["getFloat16", "setFloat16"]);
  lacks("Map", Map, ["groupBy"]);
  lacks("Math", Math, ["f16round"]);
  lacks("Object", Object, ["groupBy"]);
  lacks("Object.prototype", Object.prototype, ["__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"]);
  lacks("RegExp", RegExp, ["escape", "input", "lastMatch", "lastParen", "leftContext", "rightContext", "$&", "$'", "$+", "$_", "$`", ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => "$" + n)]);
  lacks("String.prototype", String.prototype, ["isWellFormed", "toWellFormed", "anchor", "big", "blink", "bold", "fixed", "fontcolor", "fontsize", "italics", "link", "small", "strike", "sub", "sup"]);
  lacks("Iterator.prototype", iterator, ["drop", "every", "filter", "find", "flatMap", "forEach", "map", "reduce", "some", "take", "toArray"]);
  for (const name of ["dispose", "asyncDispose", "asyncIterator"]) if (!(name in planSymbol)) define(planSymbol, name, { value: symbol("Symbol." + name) });
  for (const name of ["hasIndices", "unicodeSets"]) define(RegExp.prototype, name, { configurable: true, get() { return this === RegExp.prototype ? undefined : false; } }); // which have no such flag

  // Of the parts of a template every second one is a string of the plan.
  const template = (site, text, ...parts) => {
    for (const part of parts) {
      text = token(text) || token(part) ? host.infix("+", text, part, site) : `${bare(text, "string")}${bare(part, "string")}`;
      if (typeof text === "string") fits(text.length);
    }
    return text;
  };

  // The right side of these comes as a function, because it may have to be skipped.
  const and = (a, b, site) => (token(a) ? host.infix("&&", a, attempt(b, "&&", a, site), site) : a && b());
  const or = (a, b, site) => (token(a) ? host.infix("||", a, attempt(b, "||", a, site), site) : a || b());
  const nullish = (a, b, site) => (token(a) ? host.infix("??", a, attempt(b, "??", a, site), site) : a ?? b());
  // x op= y assigns only if it takes y. put assigns what a token makes of it.
  const logical = (op, a, assign, put, site, ask) => {
    if (!token(a) && (op === "&&" ? !a : op === "||" ? a : a !== undefined && a !== null)) return a;
    if (since > 0) ask?.();
    return token(a) ? put(host.infix(op, a, attempt(assign, op + "=", a, site), site)) : assign();
  };
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
      named(m);
      if (m.exports.__esModule) m.exports = sorted(m.exports);
    }
    return m.exports;
  };
  const sorted = (exports) => {
    const made = {};
    for (const name of Object.getOwnPropertyNames(exports).sort()) Object.defineProperty(made, name, Object.getOwnPropertyDescriptor(exports, name));
    return made;
  };
  // A default export without a name is called default.
  const named = (m) => {
    try {
      const { default: f } = m.exports;
      if (typeof f === "function" && f.name === "stdin_default") Object.defineProperty(f, "name", { value: "default", configurable: true });
    } catch {} // It has no value yet.
  };
  const run = (name) => {
    const m = modules[name];
    if (m.ran) return;
    m.ran = true;
    for (let i = 0; i < m.imports.length; i++) run(m.imports[i]);
    m.body.next();
    named(m);
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
      prefix: (op, a, site) => (token(a) ? host.prefix(op, a, site) : plainPrefix[op](op === "!" ? a : bare(a, "number"))),
      assign: (op, object, key, value, site) => {
        const old = object[key];
        if (lazy[op] === undefined) {
          const v = mine(object, site)[key] = infix(op, old, value(), site);
          if (v !== v) quiet(object, +key, 1);
          return v;
        }
        return logical(op, old, () => (object[key] = value()), (v) => (object[key] = v), site, () => mine(object, site));
      },
      logical,
      test: (a, site) => (token(a) ? host.test(a, site) : a),
      choose: (a, then, other, site) => (token(a) ? host.choose(a, attempt(then, "?:", a, site), attempt(other, "?:", a, site), site) : a ? then() : other()),
      typed: (a, site) => (token(a) ? host.look("typeof", a, site) : typeof a),
      instance: (a, b, site) => (token(a) ? host.look("instanceof", a, site) : instance(a, b)),
      put: (object, key, value, at) => {
        mine(object, at);
        // The whole value is that of the expression.
        const whole = typeof value === "number" && fold(value) !== value && isView(object) && integers.includes(object[Symbol.toStringTag]);
        object[key] = whole ? fold(value) : value;
        if (value !== value) quiet(object, +key, 1);
        return value;
      },
      value: (a, site) => (token(a) ? host.value(a, site) : a),
      given: (a, at, member) => { if (token(a)) host.given(a, at, member); },
      taken: (a, at) => { if (token(a)) host.taken(a, at); return a; },
      first: (a) => a,
      each: (a, site) => (token(a) ? host.each(a, site) : (settled(a), a)),
      pattern,
      constructed,
      heritage,
      ancestor,
      born,
      own,
      mine,
      step,
      now: () => tries,
      resumed: (v, made, at) => { own(made, at); return v; },
      iterable: (args) => { define(args, planIterator, describe(args, engineIterator)); },
      at: host.at,
    }),
  };
})
