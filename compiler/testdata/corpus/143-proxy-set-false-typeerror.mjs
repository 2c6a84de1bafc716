const stock = { apples: 3 };
const guarded = new Proxy(stock, { set: (t, k, v) => v >= 0 && Reflect.set(t, k, v) });
const sell = (n) => (guarded.apples -= n);
const sold = [sell(1), sell(1)];
export default function () {
  return [sold, sell(1), sell(1)];
}
