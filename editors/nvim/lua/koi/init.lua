-- The language server of Koi, and what its lenses do.
local M = {}

local RUN = { ["koi.run"] = "run", ["koi.test"] = "test", ["koi.audit"] = "audit" }

-- The command: `vim.g.koi_path`, else that of an environment in the folder of the project, else `koi` of the PATH.
function M.command(root)
  if vim.g.koi_path then
    return vim.g.koi_path
  end
  local own = root .. "/.venv/bin/koi"
  return vim.fn.executable(own) == 1 and own or "koi"
end

-- The folder of the project: that of `koi.toml` or `.git`, else that of the file.
function M.root(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  for _, marker in ipairs({ "koi.toml", ".git" }) do
    local find = marker == ".git" and vim.fn.finddir or vim.fn.findfile
    local found = find(marker, vim.fn.escape(folder, " ,;") .. ";")
    if found ~= "" then
      return vim.fn.fnamemodify(found, marker == ".git" and ":p:h:h" or ":p:h")
    end
  end
  return folder
end

local clients = {}

-- Start the server of a buffer's project, or use the one that runs already.
function M.attach(buffer)
  buffer = buffer == 0 and vim.api.nvim_get_current_buf() or buffer
  local root = M.root(vim.api.nvim_buf_get_name(buffer))
  local command = M.command(root)
  if vim.fn.executable(command) == 0 then
    return
  end
  local config = { name = "koi", cmd = { command, "lsp" }, root_dir = root, commands = M.commands }
  if vim.lsp.start then
    vim.lsp.start(config, { bufnr = buffer })
    return
  end
  -- Before Neovim 0.8.
  if not clients[root] or not vim.lsp.get_client_by_id(clients[root]) then
    clients[root] = vim.lsp.start_client(config)
  end
  vim.lsp.buf_attach_client(buffer, clients[root])
end

-- Words of a command line in a terminal below; no shell reads them.
local function in_terminal(words, folder)
  vim.cmd("botright 12new")
  vim.fn.termopen(words, { cwd = folder })
end

local function run(lens)
  local given = lens.arguments[1]
  local file = vim.uri_to_fname(given.uri)
  local what = RUN[lens.command]
  if what == "test" and given.target then
    file = file .. "::" .. given.target
  end
  local root = M.root(vim.uri_to_fname(given.uri))
  in_terminal({ M.command(root), what, file }, root)
end

M.commands = { ["koi.run"] = run, ["koi.test"] = run, ["koi.audit"] = run }
M.commands["koi.debug"] = function(lens)
  require("dap").run({ type = "koi", request = "launch", name = "Koi", program = vim.uri_to_fname(lens.arguments[1].uri) })
end

return M
