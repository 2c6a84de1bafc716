export default function () {
return [1 == "1", 1 === "1", null == undefined, null === undefined, NaN != NaN, "a" !== "b"]
}
