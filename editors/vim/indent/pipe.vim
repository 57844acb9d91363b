" Indentation of .pipe files: by the braces at the ends of lines. The formatter knows more.

if exists("b:did_indent")
  finish
endif
let b:did_indent = 1

setlocal indentexpr=GetPipeIndent(v:lnum)
setlocal indentkeys=0{,0},0),!^F,o,O
let b:undo_indent = "setlocal indentexpr< indentkeys<"

if exists("*GetPipeIndent")
  finish
endif

function GetPipeIndent(lnum)
  let before = prevnonblank(a:lnum - 1)
  " A comment behind code stands in a column of its own; code is what counts.
  while before > 0 && getline(before) =~ '^\s*//'
    let before = prevnonblank(before - 1)
  endwhile
  if before == 0
    return 0
  endif
  let code = substitute(getline(before), '\s*//.*$', '', '')
  let indent = indent(before)
  if code =~ '{$'
    let indent += shiftwidth()
  endif
  if getline(a:lnum) =~ '^\s*}'
    let indent -= shiftwidth()
  endif
  return indent < 0 ? 0 : indent
endfunction
