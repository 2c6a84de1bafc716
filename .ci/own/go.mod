module example.com/own

go 1.26

require github.com/rankd/rankd v0.0.0
