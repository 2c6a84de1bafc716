export default function () {
const o = { valueOf() { return 1e20 } }; return [o | 0, ~o, o >>> 1, o & 1.5]
}
