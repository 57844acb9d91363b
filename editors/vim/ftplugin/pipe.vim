" Settings for .pipe files.

if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1

setlocal expandtab shiftwidth=2 softtabstop=2 textwidth=100
setlocal comments=:// commentstring=//\ %s
setlocal formatoptions-=t formatoptions+=croql
" The whole file: gggqG
setlocal formatprg=dualpipe-opt\ -\ --format-pipe

let b:undo_ftplugin = "setlocal et< sw< sts< tw< com< cms< fo< fp<"
