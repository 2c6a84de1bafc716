export default function () {
return typeof (function () { return this })() + typeof void 0 + typeof delete [].x + typeof !1 + typeof -1 + typeof +"1"
}
