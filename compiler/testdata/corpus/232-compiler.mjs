export default function () {
try { try { null.x } finally { 1 } } catch ({ name }) { return name }
}
