export default function () {
try { throw new Error("a" + "b") } catch (e) { return e.message + "!" } finally { 1 + 1 }
}
