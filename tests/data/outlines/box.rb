module Shop
  class Box < Base
    LIMIT = 3
    def get?(key)
    end
    def self.make
    end
  end
end
