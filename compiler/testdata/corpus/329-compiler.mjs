export default function () {
try { null.x } catch { try { undefinedName } catch (e) { return e.name } }
}
