export default function () {
return [Object.isFrozen(Object.freeze([1])), Object.isSealed({}), Object.getPrototypeOf([]) === Array.prototype, Object.prototype.toString.call([]), Object.prototype.toString.call(null), Array.prototype.isPrototypeOf([])]
}
