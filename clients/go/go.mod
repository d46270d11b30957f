module idgenclient

go 1.19

// The newest that the Go of Debian 12 compiles.
require github.com/apache/thrift v0.19.0
