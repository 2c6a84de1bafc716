export default function () {
const o = {}; Object.defineProperty(o, "x", { get: () => 5, enumerable: true, configurable: true }); Object.defineProperties(o, { y: { value: 1, writable: true }, z: { value: 2, enumerable: true } }); return [o.x, Object.keys(o), { ...o }, Object.getOwnPropertyDescriptor(o, "y")]
}
