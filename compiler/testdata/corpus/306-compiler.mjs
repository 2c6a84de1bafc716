export default function () {
try { "use strict"; new Proxy({}, { set: () => false }).a = 1 } catch (e) { return e.name }
}
