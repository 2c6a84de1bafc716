import { other } from "./defines";

export default other;
