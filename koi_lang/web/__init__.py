"""Programs in the browser: many runs over HTTP, and the pages that show them."""
