export default function () {
if (!(1 > 2)) { if (!0 && !!1) return !1 } return 5
}
