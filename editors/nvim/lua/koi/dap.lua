-- The debugger, for nvim-dap: `require("koi.dap").setup()`.
local M = {}

function M.setup()
  local dap = require("dap")
  dap.adapters.koi = function(ready, config)
    local command = require("koi").command(config.cwd or vim.fn.getcwd())
    ready({ type = "executable", command = command, args = { "debug" } })
  end
  dap.configurations.koi = {
    { type = "koi", request = "launch", name = "This program", program = "${file}" },
    { type = "koi", request = "launch", name = "The last recorded run, forward and back", run = "last", stopOnEntry = true },
  }
end

return M
