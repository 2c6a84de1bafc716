// Calls every function of the sandbox with a token. Returns the functions that take it in silence, with the places at which
// they do: r is the receiver, 0 the first argument. "throws" stands behind a place where they throw an error.
(function (token, faults) {
  const isObject = (v) => (typeof v === "object" && v !== null) || typeof v === "function";
  const skip = new Set(["Key", "P", "EP", "globalThis", "hash", "random", "coalesce"]);
  const samples = {
    Array: () => [1, 2], String: () => "abc", Number: () => 5, Boolean: () => true, BigInt: () => 5n, Symbol: () => Symbol("s"), RegExp: () => /a/g,
    Map: () => new Map([[1, 2]]), Set: () => new Set([1]), WeakMap: () => new WeakMap(), WeakSet: () => new WeakSet(),
    ArrayBuffer: () => new ArrayBuffer(8), DataView: () => new DataView(new ArrayBuffer(8)), Object: () => ({ a: 1 }), Function: () => () => 1,
    Proxy: () => ({}), Error: () => new Error("e"),
  };
  const generator = (function* () { yield 1; yield 2; })();
  const starts = [[], [[1]], [{ a: 1 }], [(x) => x], ["a"], [1], [{ a: 1 }, "a"], [(x) => x, {}], [1, 1], [{ a: 1 }, "a", { value: 1 }]];
  const lines = [];
  const call = (path, f, receiver) => {
    const found = new Map(); faults(path);
    const attempt = (place, self, args) => {
      faults();
      let thrown = false;
      let result;
      try { result = Reflect.apply(f, self, args); } catch (e) { thrown = true; }
      if (faults() === 0 && !(thrown && found.get(place) === false)) found.set(place, thrown);
    };
    for (const start of starts) {
      attempt("r", token, start);
      attempt(String(start.length), receiver(), [...start, token]);
    }
    if (found.size > 0) lines.push(path + " " + [...found].sort().map(([place, thrown]) => place + (thrown ? " throws" : "")).join(", "));
  };
  const seen = new Set();
  const visit = (path, object, receiver) => {
    if (seen.has(object)) return;
    seen.add(object);
    for (const name of Reflect.ownKeys(object)) {
      if (skip.has(name)) continue;
      const label = path + (typeof name === "symbol" ? `[${name.description}]` : (path ? "." : "") + name);
      const d = Reflect.getOwnPropertyDescriptor(object, name);
      for (const f of [d.value, d.get, d.set]) {
        if (!isObject(f)) continue;
        if (typeof f === "function" && !seen.has(f)) {
          const made = samples[label] ?? receiver;
          call(label, f, receiver);
          if (f.prototype && name !== "constructor") {
            call("new " + label, function (...args) { return Reflect.construct(f, args); }, () => undefined);
            visit(label + ".prototype", f.prototype, samples[label] ?? (() => { try { return new f(4); } catch { return {}; } }));
          }
        }
        visit(label, f, () => f);
      }
    }
  };
  visit("", globalThis, () => undefined);
  visit("generator", Object.getPrototypeOf(Object.getPrototypeOf(generator)), () => (function* () { yield 1; yield 2; })());
  visit("TypedArray.prototype", Object.getPrototypeOf(Int8Array.prototype), () => new Int32Array(4));
  for (const [name, of] of [["array", [][Symbol.iterator]()], ["set", new Set()[Symbol.iterator]()], ["map", new Map()[Symbol.iterator]()], ["string", ""[Symbol.iterator]()]]) {
    visit(name + " iterator", Object.getPrototypeOf(of), () => of);
  }
  return lines.sort().join("\n") + "\n";
})
