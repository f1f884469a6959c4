package main

type Box struct {
}

type Key string

func (b *Box) Get(k Key) int {
}

func main() {
}
var limit = 3
