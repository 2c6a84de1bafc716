export default function () {
return [1, , 3].length + [, ].length + { a: 1, "b c": 2, 3: 4 }[1 + 2]
}
