package peers;

import com.zaxxer.hikari.HikariDataSource;
import javax.sql.DataSource;

/** The private MariaDB that {@code peers.py} has started; its address is in the environment. */
final class Database {
    private Database() {}

    /** A pool of ten connections, the default of this pool; only refills use it. */
    static DataSource open() {
        var pool = new HikariDataSource();
        pool.setJdbcUrl(System.getenv("PEERS_JDBC"));
        pool.setUsername("root");
        pool.setPassword("");
        return pool;
    }
}
