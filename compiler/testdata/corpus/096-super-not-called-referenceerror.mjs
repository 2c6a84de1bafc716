class Base { constructor(v) { this.v = v; } }
class Good extends Base { constructor(v) { const w = v * 2; super(w); this.w = w; } }
const good = new Good(4);
class Bad extends Base { constructor(v) { if (v > 0) super(v); this.ready = true; } }
export default function () {
  const results = [good.v, new Bad(1).ready];
  return [results, new Bad(-1)];
}
