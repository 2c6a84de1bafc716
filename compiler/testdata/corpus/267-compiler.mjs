export default function () {
const o = Object.freeze({ a: 1, b: 0 }); o.a ??= 2; o.a ||= 3; o.b &&= 4; try { o.b ||= 1 } catch (e) { return e.name }
}
