export default function () {
return `a${1}${`b${2 + `c${3}`}`}` + `${[1, 2]}${{}}${null}` + `\${}` + `line
two`
}
