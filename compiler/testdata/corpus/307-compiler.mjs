export default function () {
return [Reflect.ownKeys({ b: 1, 2: 1, a: 1, 1: 1 }), Reflect.has({ a: 1 }, "a"), Reflect.get([5], 0), Reflect.apply(Math.max, null, [1, 3]), Reflect.construct(Array, [2]).length]
}
