autocmd BufNewFile,BufRead *.koi setfiletype koi
