export default function () {
try { typeof later; let later = 1 } catch (e) { return e.name }
}
