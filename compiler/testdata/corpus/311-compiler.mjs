export default function () {
return [[].constructor === Array, ({}).constructor === Object, true.constructor === Boolean, (5).constructor === Number, [].constructor(3).length, ({}).constructor("a") + ""]
}
