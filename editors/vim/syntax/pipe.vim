" Colours of .pipe files, schedules of pipeline-parallel training.

if exists("b:current_syntax")
  finish
endif

syntax keyword pipeDeclaration pipe import schedule pipeline def let param
syntax keyword pipeControl if then else repeat as for every in
syntax keyword pipeSection rank timeline greedy phase require share place stages ranks microbatches
syntax keyword pipeOp fwd bwd bwd_input bwd_weight fused split send recv
syntax keyword pipeOperatorWord and or not div mod
syntax keyword pipeBuiltin min max
syntax keyword pipeConstant true false training
" Names in other places.
syntax keyword pipeContextual cost memory model transfer activation context group reads input output saved grad_output labels prefer limit until of on at gaps stage
syntax keyword pipeType int bool

syntax match pipeNumber "\<\d\+\(\.\d\+\)\?\>"
syntax match pipeOperator "->\|\.\.\|==\|!=\|<=\|>=\|[-+*<>=@]\|/\ze[^/]"
syntax match pipeComment "//.*$" contains=@Spell
syntax region pipeString start=+"+ skip=+\\.+ end=+"\|$+ oneline contains=pipeEscape,pipeInterpolation
syntax match pipeEscape "\\.\|{{\|}}" contained
syntax region pipeInterpolation matchgroup=pipeEscape start="{{\@!" end="}\|\ze[\"]" oneline contained contains=pipeNumber,pipeOperator,pipeOperatorWord,pipeBuiltin,pipeConstant,pipeControl

highlight default link pipeDeclaration Keyword
highlight default link pipeControl Conditional
highlight default link pipeSection Statement
highlight default link pipeOp Function
highlight default link pipeOperatorWord Operator
highlight default link pipeBuiltin Function
highlight default link pipeConstant Constant
highlight default link pipeContextual Keyword
highlight default link pipeType Type
highlight default link pipeNumber Number
highlight default link pipeOperator Operator
highlight default link pipeComment Comment
highlight default link pipeString String
highlight default link pipeEscape Special

let b:current_syntax = "pipe"
