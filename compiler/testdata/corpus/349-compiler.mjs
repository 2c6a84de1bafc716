export default function () {
return ["2024-01-02".replace(/(\d+)-(\d+)-(\d+)/, "$3/$2/$1"), "aaa".replace(/a/g, (m, i) => i), "x".replaceAll("x", "$&$&"), "a1b2".match(/\d/g), /(?<y>\d{4})/.exec("in 1999").groups.y]
}
