<?php

/**
 * Loads the classes that the Thrift compiler made, and those of the library.
 *
 * Both are looked for in the include path, which run.sh sets. Debian's php-thrift
 * puts Thrift\Protocol\TProtocol into Protocol/TProtocol.php. A program that has the
 * library from Composer has its autoloader instead, and does not need this file.
 */

declare(strict_types=1);

spl_autoload_register(function (string $class): void {
    $name = str_starts_with($class, 'Thrift\\') ? substr($class, strlen('Thrift\\')) : $class;
    $path = stream_resolve_include_path(strtr($name, '\\', '/') . '.php');
    if ($path !== false) {
        require_once $path;
    }
});
