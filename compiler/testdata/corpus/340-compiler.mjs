export default function () {
let log = []; const t = (v) => (log.push(v), v); return [t(1) && t(0) && t(2), (t(null) ?? t(3)) || t(4), t(0) ? t(5) : t(6), log]
}
