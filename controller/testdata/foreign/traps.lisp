;; SPDX-License-Identifier: Apache-2.0
;; A collector that finds out by faults what was written to, and faults of the program's.
(let ((sum 0))
  (dotimes (turn 60)
    (let ((all (loop for i below 30000 collect (list i (format nil "~a" i)))))
      (setf sum (mod (+ sum (length (remove-if-not (lambda (x) (evenp (car x))) all))) 1000007)))
    (setf sum (+ sum (handler-case (/ turn (- turn turn)) (division-by-zero () 1))))
    (gc)
    (sleep 0.005))
  (format t "~a~%" sum))
(sb-ext:exit :code 4)
