import { evaluate, LispError } from './interp.mjs';
import { read, print } from './reader.mjs';
const programs = ['(+ 1 2 (* 3 4))', '(let ((x 5) (y (* x 2))) (- y x))', '((lambda (n) (* n n)) 7)', '(if (< 1 2) "yes" "no")', '(define fact (lambda (n) (if (< n 2) 1 (* n (fact (- n 1))))))', '(fact 10)', "(quote (a (b c) 1.5))", '(list 1 (list) "s")'];
const results = programs.map((p) => print(evaluate(read(p))));
export default function () {
  const errs = ['(', ')', '(nope)', '(car 5 6', '(1 2)'].map((p) => { try { return print(evaluate(read(p))); } catch (e) { return [e.name, e.message, e instanceof LispError]; } });
  return { results, errs, round: print(read("( a  (b\n c) )")) };
}
