-- A buffer with a program: comments, indentation, and the language server.
if vim.b.did_ftplugin then
  return
end
vim.b.did_ftplugin = 1
vim.bo.commentstring = "// %s"
vim.bo.expandtab, vim.bo.shiftwidth, vim.bo.softtabstop = true, 2, 2
vim.bo.cindent, vim.bo.cinoptions = true, "J1,j1,(2s,m1"
vim.b.undo_ftplugin = "setlocal commentstring< expandtab< shiftwidth< softtabstop< cindent< cinoptions<"

if vim.g.koi_lsp ~= false then
  require("koi").attach(0)
end
