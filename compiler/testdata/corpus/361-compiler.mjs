export default function () {
const c = 1; return (() => { "use strict"; undefinedVariable = 5 })()
}
