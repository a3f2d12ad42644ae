% SPDX-License-Identifier: Apache-2.0
% Threads of the linear algebra, exceptions through the interpreter, text that is evaluated.
1;
function r = fall (n)
  if (n == 0)
    error ("bottom:reached", "bottom");
  end
  r = fall (n - 1);
end
s = 0;
for turn = 1:200
  a = mod (reshape (1:40000, 200, 200) * turn, 17) + eye (200) * 400;
  s += round (sum (sum (a \ a)));
  try
    fall (20);
  catch e
    s += length (e.identifier);
  end
  s += eval (sprintf ("numel (strsplit (num2str (1:%d)))", turn));
  s += numel (regexprep (repmat ("ab ", 1, 500), "b", "cc"));
end
printf ("%d\n", s);
exit (6);
